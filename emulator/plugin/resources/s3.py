"""S3 buckets, and what is set on one by a resource of its own."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar, Final, TypeVar

from typing_extensions import override

from emulator.plugin.aws import Aws, capitalised, error_code, renamed, tag_list, tag_map, uncapitalised
from emulator.plugin.resource import TAGS, ResourceType
from emulator.plugin.schema import Fields, Input, Values

T = TypeVar("T")

# S3's own region, of which a request must not say that it is meant (Amazon S3 API reference, CreateBucket).
_DEFAULT_REGION: Final = "us-east-1"


class Bucket(ResourceType):
    """A bucket without what has resources of its own; its id is its name."""

    type_name = "aws:s3/bucket:Bucket"
    source = "internal/service/s3/bucket.go at 4c72bcc7dc2f5ace40ce61f2a90e12a62cf4ec9a"
    inputs: ClassVar[Fields] = {
        "bucket": Input(force_new=True, computed=True),
        "forceDestroy": Input(default=False, remembered=True),
        "tags": TAGS,
    }
    outputs = ("arn", "bucketDomainName", "bucketRegion", "region", "tagsAll")
    name = "bucket"
    name_length = 63
    gone = frozenset({"404", "NoSuchBucket"})

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        where = {} if aws.region == _DEFAULT_REGION else {"LocationConstraint": aws.region}
        configuration = {"CreateBucketConfiguration": where} if where else {}
        aws.client("s3").create_bucket(Bucket=inputs["bucket"], **configuration)
        return str(inputs["bucket"])

    @override
    def settle(self, aws: Aws, resource_id: str, inputs: Values) -> None:
        if tags := inputs.get("tags"):
            aws.client("s3").put_bucket_tagging(Bucket=resource_id, Tagging={"TagSet": tag_list(tags)})

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        s3 = aws.client("s3")
        s3.head_bucket(Bucket=resource_id)
        tags = _unless("NoSuchTagSet", lambda: s3.get_bucket_tagging(Bucket=resource_id)["TagSet"])
        return {
            "arn": f"arn:aws:s3:::{resource_id}",
            "bucket": resource_id,
            "bucketDomainName": f"{resource_id}.s3.amazonaws.com",
            "bucketRegion": s3.get_bucket_location(Bucket=resource_id)["LocationConstraint"] or _DEFAULT_REGION,
            "tags": tag_map(tags),
        }

    @override
    def update(self, aws: Aws, resource_id: str, old: Values, new: Values, changed: Collection[str]) -> None:
        """Change nothing: `forceDestroy` is only looked at when the bucket is deleted."""

    @override
    def retag(self, aws: Aws, resource_id: str, state: Values, add: Mapping[str, str], remove: Sequence[str]) -> None:
        s3 = aws.client("s3")
        if add:
            s3.put_bucket_tagging(Bucket=resource_id, Tagging={"TagSet": tag_list(add)})
        else:
            s3.delete_bucket_tagging(Bucket=resource_id)

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        s3 = aws.client("s3")
        if state.get("forceDestroy"):
            for page in s3.get_paginator("list_object_versions").paginate(Bucket=resource_id):
                found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
                objects = [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in found]
                if objects:
                    s3.delete_objects(Bucket=resource_id, Delete={"Objects": objects, "Quiet": True})
        s3.delete_bucket(Bucket=resource_id)


def _unless(code: str, ask: Callable[[], T]) -> T | None:
    """Return an answer of AWS, or None when that is AWS's way to say that there is none."""
    try:
        return ask()
    except Exception as error:
        if error_code(error) == code:
            return None
        raise


class _OfBucket(ResourceType):
    """Something that is set on a bucket as a whole, and replaced as a whole; its id is the bucket's name."""

    name = None

    def put(self, aws: Aws, bucket: str, inputs: Values) -> None:
        """Set it."""
        raise NotImplementedError

    @override
    def create(self, aws: Aws, inputs: Values) -> str:
        self.put(aws, inputs["bucket"], inputs)
        return str(inputs["bucket"])

    @override
    def update(self, aws: Aws, resource_id: str, old: Values, new: Values, changed: Collection[str]) -> None:
        self.put(aws, resource_id, new)


class BucketPublicAccessBlock(_OfBucket):
    """Which ways to make a bucket public are closed."""

    type_name = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
    source = "internal/service/s3/bucket_public_access_block.go at 30b8cc6de5e6843e30f28a55336ba47ededbfc4f"
    inputs: ClassVar[Fields] = {
        "blockPublicAcls": Input(default=False),
        "blockPublicPolicy": Input(default=False),
        "bucket": Input(required=True, force_new=True),
        "ignorePublicAcls": Input(default=False),
        "restrictPublicBuckets": Input(default=False),
    }
    outputs = ("region",)
    gone = frozenset({"NoSuchBucket", "NoSuchPublicAccessBlockConfiguration"})

    @override
    def put(self, aws: Aws, bucket: str, inputs: Values) -> None:
        configuration = capitalised({name: value for name, value in inputs.items() if name != "bucket"})
        aws.client("s3").put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=configuration)

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        found = aws.client("s3").get_public_access_block(Bucket=resource_id)["PublicAccessBlockConfiguration"]
        return {"bucket": resource_id, **uncapitalised(found)}

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        aws.client("s3").delete_public_access_block(Bucket=resource_id)


class BucketServerSideEncryptionConfiguration(_OfBucket):
    """How S3 encrypts what comes without a wish of its own."""

    type_name = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
    source = (
        "internal/service/s3/bucket_server_side_encryption_configuration.go at 3ab512181f1ff587faccd86224f6515f48cd472c"
    )
    inputs: ClassVar[Fields] = {
        "bucket": Input(required=True, force_new=True),
        "rules": Input(
            required=True,
            unordered=True,
            fields={"applyServerSideEncryptionByDefault": Input(fields={"sseAlgorithm": Input(required=True)})},
        ),
    }
    outputs = ("region",)
    gone = frozenset({"NoSuchBucket", "ServerSideEncryptionConfigurationNotFoundError"})

    @override
    def put(self, aws: Aws, bucket: str, inputs: Values) -> None:
        rules = [
            {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": default["sseAlgorithm"]}}
            for rule in inputs["rules"]
            if (default := rule.get("applyServerSideEncryptionByDefault"))
        ]
        aws.client("s3").put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": rules})

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        found = aws.client("s3").get_bucket_encryption(Bucket=resource_id)["ServerSideEncryptionConfiguration"]
        rules = [
            {"applyServerSideEncryptionByDefault": {"sseAlgorithm": default["SSEAlgorithm"]}}
            for rule in found["Rules"]
            if (default := rule.get("ApplyServerSideEncryptionByDefault"))
        ]
        return {"bucket": resource_id, "rules": rules}

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        aws.client("s3").delete_bucket_encryption(Bucket=resource_id)


class BucketLifecycleConfiguration(_OfBucket):
    """What becomes of old objects."""

    type_name = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
    source = "internal/service/s3/bucket_lifecycle_configuration.go at edd83424302044e8c32a0ca62412fa55499cd136"
    inputs: ClassVar[Fields] = {
        "bucket": Input(required=True, force_new=True),
        "rules": Input(
            fields={
                "abortIncompleteMultipartUpload": Input(fields={"daysAfterInitiation": Input()}),
                "filter": Input(fields={"prefix": Input()}),
                "id": Input(required=True),
                "status": Input(required=True),
                "transitions": Input(unordered=True, fields={"days": Input(), "storageClass": Input(required=True)}),
            }
        ),
    }
    outputs = ("region",)
    gone = frozenset({"NoSuchBucket", "NoSuchLifecycleConfiguration"})

    @override
    def put(self, aws: Aws, bucket: str, inputs: Values) -> None:
        rules = [renamed(capitalised(rule), {"Id": "ID"}) for rule in inputs.get("rules") or ()]
        aws.client("s3").put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": rules})

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        rules = aws.client("s3").get_bucket_lifecycle_configuration(Bucket=resource_id)["Rules"]
        return {"bucket": resource_id, "rules": [uncapitalised(renamed(rule, {"ID": "id"})) for rule in rules]}

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        aws.client("s3").delete_bucket_lifecycle(Bucket=resource_id)


class BucketPolicy(_OfBucket):
    """Who may do what with a bucket, as the bucket says."""

    type_name = "aws:s3/bucketPolicy:BucketPolicy"
    source = "internal/service/s3/bucket_policy.go at c7cbd9b0a67d048c2ce5b12b3569da703524892b"
    inputs: ClassVar[Fields] = {
        "bucket": Input(required=True, force_new=True),
        "policy": Input(required=True, document=True),
    }
    outputs = ("region",)
    gone = frozenset({"NoSuchBucket", "NoSuchBucketPolicy"})

    @override
    def put(self, aws: Aws, bucket: str, inputs: Values) -> None:
        aws.client("s3").put_bucket_policy(Bucket=bucket, Policy=inputs["policy"])

    @override
    def read(self, aws: Aws, resource_id: str) -> Values | None:
        return {
            "bucket": resource_id,
            "policy": aws.client("s3").get_bucket_policy(Bucket=resource_id)["Policy"],
        }

    @override
    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        aws.client("s3").delete_bucket_policy(Bucket=resource_id)
