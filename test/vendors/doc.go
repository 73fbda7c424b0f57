// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package vendors holds our wire protocols against the vendors' own Go SDKs: it
// has nothing but tests. What our clients send must be what an SDK's types can
// hold without loss, and what the SDK's client sends for the same content; what
// an SDK's types write as a reply, our clients must read as the SDK does.
//
// It is a module of its own, so that nothing of the SDKs comes near the
// project's own dependencies.
package vendors
