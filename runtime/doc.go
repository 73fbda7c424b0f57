// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runtime is the root of the light library that agents' pods run: it
// holds documentation only.
//
// Nothing below it imports Kubernetes. The flow of one request is
//
//	reload -> router.Document -> engine snapshot -> workspace or reference -> probe -> selection -> cache -> provider -> observation
//
// and serve/rest and serve/mcp are adapters over engine.
package runtime
