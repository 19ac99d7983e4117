"""A queue as a stack's outputs describe it, for tests to use and to change with :func:`dataclasses.replace`."""

from typing import Final

from infra.outputs import Queue

C5A_LARGE_SPOT: Final = Queue(
    name="c5a-large-spot",
    arn="arn:aws:batch:us-east-1:123456789012:job-queue/c5a-large-spot",
    compute_environment="c5a-large-spot",
    instance_type="c5a.large",
    purchase="spot",
    vcpus=2,
    memory_mib=4096,
    gpus=0,
    gpu_model=None,
    architecture="x86_64",
    max_vcpus=16,
    fair_share=False,
)
