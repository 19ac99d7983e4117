# What a run executes in: Python with uv, a virtual display, ffmpeg, and the locked packages of this project.
#
# The base is CUDA's runtime because the GPU queues need one. Of CUDA 12 the newest: by CUDA's minor version
# compatibility it runs on every driver since 525, so on any GPU image that AWS Batch starts, where a CUDA 13 image
# needs driver 580 (CUDA Toolkit release notes, "CUDA Driver"). It exists for linux/amd64 and linux/arm64.
# Without GPUs a plain base is several GB smaller: --build-arg BASE_IMAGE=ubuntu:24.04.
ARG BASE_IMAGE=nvidia/cuda:12.9.1-runtime-ubuntu24.04
FROM ${BASE_IMAGE}

# xvfb and the GL libraries render frames without a screen, ffmpeg writes videos, tini reaps and passes signals on,
# git tells W&B the commit, build-essential builds the packages that have no wheel for this architecture.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        build-essential ca-certificates ffmpeg git libegl1 libgl1 python3-dev python3-venv tini xvfb \
    && rm -rf /var/lib/apt/lists/* \
    && mkdir --mode 1777 /tmp/.X11-unix

ARG UV_VERSION=0.13.9
RUN python3 -m venv /opt/uv \
    && /opt/uv/bin/pip install --no-cache-dir uv==${UV_VERSION} \
    && ln -s /opt/uv/bin/uv /opt/uv/bin/uvx /usr/local/bin/ \
    && useradd --create-home trainer \
    && install --directory --owner trainer /app /opt/venv
USER trainer
WORKDIR /app

# `uv run` takes the environment as it is here: 200 containers must not each download it.
ENV UV_PROJECT_ENVIRONMENT=/opt/venv \
    VIRTUAL_ENV=/opt/venv \
    UV_NO_SYNC=1 \
    UV_PYTHON_DOWNLOADS=never \
    PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1

# The packages come before the code, so that a change of the code does not install them again.
ARG UV_SYNC_OPTIONS="--only-group examples"
COPY pyproject.toml uv.lock ./
RUN uv sync --locked --no-cache --no-install-project ${UV_SYNC_OPTIONS}

COPY entrypoint.sh /usr/local/bin/
COPY --chown=trainer . .

# The screen of the virtual display; empty for none.
ENV XVFB_SCREEN=1024x768x24
ENTRYPOINT ["tini", "-s", "--", "/usr/local/bin/entrypoint.sh"]
