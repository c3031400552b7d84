# The image: one static binary, certificates of authorities, and nothing else. There is no shell.
#
#   docker build -t moorage .
#   docker run --rm --network host moorage demo
#
# scripts/image.py makes the same image without Docker. It carries out the last stage, and runs
# scripts/rootfs.sh as the first one does.
FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build
ARG TARGETOS=linux
ARG TARGETARCH
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH scripts/rootfs.sh /out

FROM scratch
COPY --from=build --chown=0:0 /out/root/ /
COPY --from=build --chown=65532:65532 /out/data/ /data/
LABEL org.opencontainers.image.title="Moorage" org.opencontainers.image.description="An Apache Iceberg REST catalog"
ENV MOORAGE_DATA=/data
USER 65532:65532
WORKDIR /data
VOLUME ["/data"]
EXPOSE 8181
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["/usr/bin/moorage", "healthcheck"]
ENTRYPOINT ["/usr/bin/moorage"]
CMD ["serve"]
