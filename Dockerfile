# Builds PicoD and puts it into an image that can be run as a sandbox as it is:
#   docker build --tag picod .
#   docker run --rm --env PICOD_ACCESS_TOKEN --publish 127.0.0.1:49983:49983 picod
# Into an image of your own, whatever its C library, it goes with one line, because the folder needs nothing else:
#   COPY --from=picod /opt/picod /opt/picod
# Where no image registry can be reached, scripts/build-image.sh builds the last stage of this file on a Debian of its own.

# A release pins digests: append @sha256:… to both.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim
ARG DEBIAN_IMAGE=debian:bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /src
# The dependencies in a layer of their own: they change less often than the sources.
COPY package.json package-lock.json .npmrc ./
RUN npm ci
# The folder's C libraries are Debian's packages, and pip has the compiler of its launcher: see docs/packaging.md.
# Nothing of this stage but the folder is kept, and apt's lists are asked for those packages.
# hadolint ignore=DL3008,DL3009
RUN apt-get update && apt-get install --yes --no-install-recommends python3-venv
COPY . .
ARG COMMIT=
ARG SOURCE_DATE_EPOCH=315532800
RUN PICOD_COMMIT=${COMMIT} npm run package -- --folder /opt/picod

FROM ${DEBIAN_IMAGE}
ARG VERSION=0.1.0
ARG COMMIT=
LABEL org.opencontainers.image.title="picod" \
      org.opencontainers.image.description="The daemon inside an AI agent's sandbox: run commands and move files over one authenticated port" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}" \
      org.opencontainers.image.licenses="Apache-2.0"
# Commands run as whoever the daemon runs as. The link is for people; the entry point does not depend on it.
RUN useradd --uid 1000 --create-home --shell /bin/bash picod \
 && ln -s /opt/picod/picod /usr/local/bin/picod
# Owned by root, so that commands cannot change the daemon.
COPY --from=build /opt/picod /opt/picod
# docker stop waits 10 s: calls in progress get half of that, what is left is for ending commands that ignore TERM.
ENV PICOD_SHUTDOWN_GRACE=5s
EXPOSE 49983
# Asks PICOD_PORT: where another port is wanted, set the variable rather than --port.
HEALTHCHECK --interval=30s --timeout=5s --start-period=5s CMD ["/opt/picod/picod", "healthcheck"]
# A daemon that runs as root ("--user 0") can run commands as anybody: see deploy/ for when that is the better choice.
# By number, which is how Kubernetes can tell that it is not root (runAsNonRoot).
USER 1000:1000
WORKDIR /home/picod
# No tini: as PID 1 the daemon reaps orphans itself.
ENTRYPOINT ["/opt/picod/picod"]
