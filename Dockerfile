# Copyright The Vision Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# The images for those who build with Docker (BuildKit). `make images` builds the same ones without it:
# hack/images gathers the files for both, and its tests compare the rest. One target for each image:
#
#   docker build --target vision-operator -t vision-operator:dev .
#   docker build --target vision-runtime  -t vision-runtime:dev  .
#   docker build --target vision-ocr      -t vision-ocr:dev      .

FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
ENV GOWORK=off GOFLAGS=-mod=readonly
COPY go.mod go.sum ./
COPY hack/images/go.mod hack/images/go.sum hack/images/
RUN go mod download && (cd hack/images && go mod download)
COPY api api
COPY cmd cmd
COPY controllers controllers
COPY runtime runtime
COPY webhook webhook
COPY hack/images hack/images
WORKDIR /src/hack/images
ARG TARGETARCH VERSION=unknown

FROM build AS vision-operator-files
RUN go run -buildvcs=false . rootfs -images vision-operator -arch "$TARGETARCH" -version "$VERSION" -out /out

FROM scratch AS vision-operator
ARG VERSION=unknown REVISION=unknown CREATED=1970-01-01T00:00:00Z
COPY --from=vision-operator-files /out/vision-operator/ /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/vision-operator"]
LABEL org.opencontainers.image.title="Vision Operator"
LABEL org.opencontainers.image.description="Controllers and admission webhooks that give AI agents in Kubernetes governed access to vision models"
LABEL org.opencontainers.image.source="https://github.com/visionoperator/vision-operator"
LABEL org.opencontainers.image.url="https://github.com/visionoperator/vision-operator"
LABEL org.opencontainers.image.licenses="Apache-2.0"
LABEL org.opencontainers.image.version="$VERSION"
LABEL org.opencontainers.image.revision="$REVISION"
LABEL org.opencontainers.image.created="$CREATED"

FROM build AS vision-runtime-files
RUN go run -buildvcs=false . rootfs -images vision-runtime -arch "$TARGETARCH" -version "$VERSION" -out /out

FROM scratch AS vision-runtime
ARG VERSION=unknown REVISION=unknown CREATED=1970-01-01T00:00:00Z
COPY --from=vision-runtime-files /out/vision-runtime/ /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/vision-runtime"]
LABEL org.opencontainers.image.title="Vision Operator runtime"
LABEL org.opencontainers.image.description="Sidecar that looks at images for an AI agent, under a platform team's policy"
LABEL org.opencontainers.image.source="https://github.com/visionoperator/vision-operator"
LABEL org.opencontainers.image.url="https://github.com/visionoperator/vision-operator"
LABEL org.opencontainers.image.licenses="Apache-2.0"
LABEL org.opencontainers.image.version="$VERSION"
LABEL org.opencontainers.image.revision="$REVISION"
LABEL org.opencontainers.image.created="$CREATED"

FROM build AS vision-ocr-files
RUN go run -buildvcs=false . rootfs -images vision-ocr -arch "$TARGETARCH" -version "$VERSION" -out /out

FROM scratch AS vision-ocr
ARG VERSION=unknown REVISION=unknown CREATED=1970-01-01T00:00:00Z
COPY --from=vision-ocr-files /out/vision-ocr/ /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/vision-ocr"]
LABEL org.opencontainers.image.title="Vision Operator OCR provider"
LABEL org.opencontainers.image.description="Vision provider that needs no key and no internet: a Chat Completions server backed by Tesseract"
LABEL org.opencontainers.image.source="https://github.com/visionoperator/vision-operator"
LABEL org.opencontainers.image.url="https://github.com/visionoperator/vision-operator"
LABEL org.opencontainers.image.licenses="Apache-2.0"
LABEL org.opencontainers.image.version="$VERSION"
LABEL org.opencontainers.image.revision="$REVISION"
LABEL org.opencontainers.image.created="$CREATED"
