// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// KeysOf names the keys that a pod of a profile mounts, as KeyName does, in the
// document's order: those of the profile's providers that are in the pod's
// namespace.
func KeysOf(doc *router.Document, profile *router.Profile) []string {
	var names []string
	for i := range doc.Providers {
		p := &doc.Providers[i]
		used := slices.ContainsFunc(profile.Providers, func(u router.ProviderUse) bool { return u.Provider == p.Name })
		if c := p.Credential; used && c != nil && c.Namespace == doc.Namespace {
			names = append(names, KeyName(c.File, c.Secret, c.Key))
		}
	}
	return names
}

// KeyName names a key, where it is mounted and where it comes from, without
// anything of what it is: "<file>=<Secret>/<key>".
func KeyName(file, secret, key string) string { return file + "=" + secret + "/" + key }
