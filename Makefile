# Copyright The Vision Operator Authors.
# SPDX-License-Identifier: Apache-2.0

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Where the targets look, and how long they may take.
PKG      ?= ./...
RUN      ?= .
BENCH    ?= .
FUZZ     ?= .
FUZZTIME ?= 20s
TIMEOUT  ?= 15m
SOAK     ?= 20000
# Set when PKG is everything: then the tests against the vendors' SDKs, a module of their own, are meant too.
WHOLE    := $(filter ./...,$(PKG))

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
BINARIES := vision-operator vision-runtime vision-ocr kubectl-vision
TOOL     := hack/tools/run
# What `make images` builds, and from which of Debian's packages: those of the lock, or the current ones.
IMAGES   ?= vision-operator vision-runtime vision-ocr
ARCH     ?= amd64 arm64
DEBIAN   ?= locked

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## "; print "make TARGET, where TARGET is one of:" } \
	  /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Write code

.PHONY: generate
generate: ## Generate the Go code of the API types (deep copies)
	$(TOOL) controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...

.PHONY: manifests
manifests: ## Generate CRDs, the chart's copy of them, and RBAC and webhooks where markers ask for them
	hack/manifests

.PHONY: docs
docs: ## Generate docs/reference/api.md from the API types, and the charts' README.md from their values
	@mkdir -p docs/reference
	$(TOOL) crd-ref-docs --source-path=api --config=hack/apidocs/config.yaml --templates-dir=hack/apidocs/templates --renderer=markdown --output-path=docs/reference/api.md --log-level=WARN
	go run ./hack/chartdocs charts/vision-operator charts/vision-operator-crds

.PHONY: fmt
fmt: ## Format the Go code
	gofmt -w $$(git ls-files -co --exclude-standard -- '*.go')

.PHONY: lint
lint: ## Run golangci-lint (.golangci.yml)
	$(TOOL) golangci-lint run --allow-parallel-runners $(PKG)
	$(if $(WHOLE),cd test/vendors && ../../$(TOOL) golangci-lint run --allow-parallel-runners ./...)
	$(if $(WHOLE),cd hack/images && ../../$(TOOL) golangci-lint run --allow-parallel-runners ./...)
	$(if $(WHOLE),cd hack/cluster && ../../$(TOOL) golangci-lint run --allow-parallel-runners ./...)

##@ Check

.PHONY: test
test: ready ## Run the tests on a real API server (PKG=./runtime/... RUN=TestName to narrow)
	{ status=0; go test -json -timeout $(TIMEOUT) -run '$(RUN)' $(PKG) || status=$$?; \
	  $(if $(WHOLE),(cd test/vendors && GOWORK=off go test -json -timeout $(TIMEOUT) -run '$(RUN)' ./...) || status=$$?;) \
	  $(if $(WHOLE),(cd hack/images && GOWORK=off go test -json -timeout $(TIMEOUT) -run '$(RUN)' ./...) || status=$$?;) \
	  $(if $(WHOLE),(cd hack/cluster && GOWORK=off go test -json -timeout $(TIMEOUT) -run '$(RUN)' ./...) || status=$$?;) \
	  exit $$status; } | go run ./hack/testsummary

.PHONY: bench
bench: ready ## Run the benchmarks (BENCH=Probe to narrow)
	packages=$$(git grep --untracked -lE '^func Benchmark' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's,^,./,'); \
	  go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout $(TIMEOUT) $$packages

.PHONY: soak
soak: ## Send the runtime 20,000 model requests among faults and reloads, and see that nothing grows (SOAK=n)
	VISION_SOAK=$(SOAK) go test -count=1 -v -timeout $(TIMEOUT) -run TestNothingGrows ./cmd/vision-runtime

.PHONY: fuzz
fuzz: ready ## Run every fuzz target for FUZZTIME=20s (FUZZ=runtime/probe to narrow)
	hack/fuzz $(FUZZTIME) '$(FUZZ)'

.PHONY: verify
verify: ## Regenerate everything and fail when a file was stale; check format, modules, kustomize and Helm
	@hack/verify

.PHONY: e2e
e2e: ## Run the end-to-end tests on a real cluster with the real images (root on Linux, or KUBECONFIG)
	hack/e2e

##@ Build and run

.PHONY: build
build: ## Build the binaries into bin/
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/ $(addprefix ./cmd/,$(BINARIES))

.PHONY: images
images: ## Build the images and their SBOMs into bin/images, without Docker (IMAGES=vision-runtime ARCH=amd64 to narrow)
	@cd hack/images && GOWORK=off GOFLAGS=-mod=readonly go run -buildvcs=false . build -out '$(CURDIR)/bin/images' \
	  -version '$(VERSION)' -images '$(IMAGES)' -arch '$(ARCH)' -debian '$(DEBIAN)'

.PHONY: images-lock
images-lock: ## Move the images to the newest of Debian's packages: writes hack/images/debian.lock.json
	@cd hack/images && GOWORK=off GOFLAGS=-mod=readonly go run -buildvcs=false . lock

.PHONY: build-installer
build-installer: ## Write dist/install.yaml: config/default, with the images' tag where VERSION=x is given
	@hack/installer $(if $(filter command line environment,$(origin VERSION)),'$(VERSION)')

.PHONY: controlplane
controlplane: ## Build kube-apiserver, etcd and kubectl into the per-user cache, once
	@hack/controlplane/assets

.PHONY: demo
demo: ready ## Show the whole path on a real API server (KEEP=1 leaves it running)
	@echo "building the demo" >&2
	@CGO_ENABLED=0 go build -o bin/demo ./hack/demo
	@exec bin/demo $(if $(KEEP),-keep)

# What tests and the demo run: Debian's packages first, since they may need the user, then the control plane.
.PHONY: ready
ready:
	@hack/deps
	@hack/controlplane/assets >/dev/null

.PHONY: cluster-up
cluster-up: ## Start a real single-node Kubernetes on this machine (root on Linux; see hack/cluster/README.md)
	@hack/deps --cluster
	@hack/cluster/up

.PHONY: cluster-down
cluster-down: ## Stop it and remove all that it left
	@hack/cluster/down
