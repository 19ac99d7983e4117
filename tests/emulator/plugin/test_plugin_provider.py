"""How the provider is configured."""

import json
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2 as pb

from emulator.plugin.functions import FUNCTIONS
from emulator.plugin.messages import from_struct, to_struct
from emulator.plugin.protocol import Plugin
from emulator.plugin.resources import TYPES
from emulator.server import EmulatorServer

GROUP = "aws:cloudwatch/logGroup:LogGroup"


class RefusedError(Exception):
    pass


class Context:
    """A call's context as a servicer sees it, for a plugin that is asked without a server."""

    def abort(self, _: grpc.StatusCode, details: str) -> None:
        raise RefusedError(details)


@pytest.fixture
def plugin(account: EmulatorServer, tmp_path: Any) -> Plugin:
    return Plugin("7.0.0", TYPES, FUNCTIONS, account.url, str(tmp_path / "plugin.log"))


def configure(plugin: Plugin, **settings: Any) -> Any:
    return plugin.Configure(pb.ConfigureRequest(args=to_struct(settings)), Context())


def test_an_account_elsewhere_is_never_touched(tmp_path: Any) -> None:
    for endpoint in ("", "https://batch.us-east-1.amazonaws.com", "http://127.0.0.1.example.org"):
        plugin = Plugin("7.0.0", TYPES, FUNCTIONS, endpoint, str(tmp_path / "plugin.log"))
        with pytest.raises(RefusedError, match="only talks to an emulated account on this machine"):
            configure(plugin, region="us-east-1")
        with pytest.raises(RefusedError, match="not configured"):
            plugin.Invoke(pb.InvokeRequest(tok="aws:index/getRegion:getRegion"), Context())


def test_an_account_that_does_not_answer_is_a_sentence(tmp_path: Any) -> None:
    plugin = Plugin("7.0.0", TYPES, FUNCTIONS, "http://127.0.0.1:1", str(tmp_path / "plugin.log"))
    with pytest.raises(RefusedError, match=r"the emulated account at http://127.0.0.1:1 does not answer"):
        configure(plugin, region="us-east-1", allowedAccountIds=json.dumps(["123456789012"]))


def test_only_an_allowed_account_is_configured(plugin: Plugin) -> None:
    """The engine configures the provider for a destroy too, so that one in the wrong account stops there."""
    configure(plugin, region="us-east-1", allowedAccountIds=json.dumps(["123456789012"]))
    with pytest.raises(RefusedError, match=r"AWS account ID not allowed: 123456789012 \(allowed .* 999999999999\)"):
        configure(plugin, region="us-east-1", allowedAccountIds=json.dumps(["999999999999"]))
    with pytest.raises(RefusedError, match="not allowed"):
        configure(plugin, region="us-east-1", forbiddenAccountIds=json.dumps(["123456789012"]))


def test_a_region_is_needed(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(RefusedError, match="pulumi config set aws:region"):
        configure(plugin)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    configure(plugin)
    assert plugin.settings.region == "eu-west-1"


def test_a_persons_own_aws_configuration_is_not_read(
    plugin: Plugin, account: EmulatorServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """A profile that does not exist would be an error, and one that does would sign with real keys."""
    (tmp_path / "config").write_text("[profile mine]\nregion = eu-west-3\nsource_profile = nowhere\nrole_arn = a\n")
    monkeypatch.setenv("AWS_PROFILE", "mine")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")
    account.record.clear()
    configure(plugin, region="us-east-1", profile="other", allowedAccountIds=json.dumps(["123456789012"]))
    assert [call.region for call in account.record.calls("sts", "GetCallerIdentity")] == ["us-east-1"]


def test_a_setting_that_is_not_served_is_refused_by_its_name(plugin: Plugin) -> None:
    news = {"region": "us-east-1", "skipMetadataApiCheck": "true", "accessKey": "AKIA", "version": "7.0.0"}
    reply = plugin.CheckConfig(pb.CheckRequest(news=to_struct(news)), Context())
    assert [failure.property for failure in reply.failures] == ["accessKey"]


def test_another_region_replaces_the_provider_and_so_its_resources(plugin: Plugin) -> None:
    old, new = {"region": "us-east-1", "profile": "a"}, {"region": "eu-west-1", "profile": "b"}
    reply = plugin.DiffConfig(pb.DiffRequest(olds=to_struct(old), news=to_struct(new)), Context())
    assert (list(reply.diffs), list(reply.replaces)) == (["profile", "region"], ["region"])


def test_an_explicit_provider_works_in_its_region(plugin: Plugin, aws: Any) -> None:
    configure(plugin, region="eu-west-1")
    urn = f"urn:pulumi:dev::rl::{GROUP}::jobs"
    checked = plugin.Check(pb.CheckRequest(urn=urn), Context()).inputs
    made = plugin.Create(pb.CreateRequest(urn=urn, properties=checked), Context())
    state = from_struct(made.properties)
    assert state["region"] == "eu-west-1"
    assert state["arn"].startswith("arn:aws:logs:eu-west-1:")
    assert aws("logs", "eu-west-1").describe_log_groups()["logGroups"]
    assert not aws("logs").describe_log_groups(logGroupNamePrefix=made.id)["logGroups"]


def test_default_tags_are_merged_in_check(plugin: Plugin) -> None:
    configure(plugin, region="us-east-1", defaultTags=json.dumps({"tags": {"team": "rl", "a": "default"}}))
    urn = f"urn:pulumi:dev::rl::{GROUP}::jobs"
    reply = plugin.Check(pb.CheckRequest(urn=urn, news=to_struct({"tags": {"a": "own"}})), Context())
    assert from_struct(reply.inputs)["tags"] == {"team": "rl", "a": "own"}


def test_secrets_are_left_to_the_engine(plugin: Plugin) -> None:
    """It takes them off for a plugin that does not accept them, and puts them on again by the input's name."""
    handshake = plugin.Handshake(pb.ProviderHandshakeRequest(), Context())
    configured = configure(plugin, region="us-east-1")
    assert not handshake.accept_secrets
    assert not configured.acceptSecrets
    assert configured.supportsPreview
    assert plugin.GetPluginInfo(empty_pb2.Empty(), Context()).version == "7.0.0"
