# Copyright The Vision Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# One target for each image:
#
#   docker build --target vision-operator -t vision-operator:dev .
#   docker build --target vision-runtime  -t vision-runtime:dev  .
#   docker build --target vision-ocr      -t vision-ocr:dev      .

FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY controllers controllers
COPY runtime runtime
COPY webhook webhook
ARG TARGETOS TARGETARCH VERSION=unknown
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
      -ldflags "-s -w -X main.version=$VERSION" -o /out/ \
      ./cmd/vision-operator ./cmd/vision-runtime ./cmd/vision-ocr

# A static binary and the roots that it trusts, nothing to run beside it.
FROM scratch AS static
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
USER 65532:65532

FROM static AS vision-operator
COPY --from=build /out/vision-operator /vision-operator
ENTRYPOINT ["/vision-operator"]

FROM static AS vision-runtime
COPY --from=build /out/vision-runtime /vision-runtime
ENTRYPOINT ["/vision-runtime"]

# The embedded provider runs Debian's Tesseract.
FROM debian:12-slim AS vision-ocr
RUN apt-get update \
 && apt-get install -y --no-install-recommends tesseract-ocr tesseract-ocr-eng \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/vision-ocr /usr/local/bin/vision-ocr
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/vision-ocr"]
