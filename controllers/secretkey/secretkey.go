// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package secretkey judges whether a Secret's key can be a provider's API key, the
// same way for a provider's status and for the admission of pods that mount it.
// What it says tells the kind of mistake and nothing of the value.
package secretkey

import (
	"bytes"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// Verdict is what was found, in the terms of the condition CredentialsResolved.
type Verdict struct {
	OK              bool
	Reason, Message string
}

// maxBytes is the most that runtimes read of a key: see runtime/provider/transport.
const maxBytes = 64 << 10

// Judge looks at a key of a Secret. Runtimes take every key that it finds good.
func Judge(secret *corev1.Secret, key string) Verdict {
	value, found := secret.Data[key]
	name := secret.Name
	switch {
	case !found:
		return bad(v1alpha1.ReasonSecretKeyNotFound, "Secret %q has no key %q", name, key)
	case len(bytes.TrimSpace(value)) == 0:
		return bad(v1alpha1.ReasonSecretKeyEmpty, "key %q of Secret %q is empty", key, name)
	case len(bytes.TrimSpace(value)) != len(value):
		return bad(v1alpha1.ReasonSecretKeyMalformed,
			"key %q of Secret %q has white space or a newline around its value; `echo -n` or --from-file without a final newline avoids it", key, name)
	case quoted(value):
		return bad(v1alpha1.ReasonSecretKeyMalformed, "key %q of Secret %q has quotes around its value", key, name)
	case bytes.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
		return bad(v1alpha1.ReasonSecretKeyMalformed,
			"key %q of Secret %q has a line break, a control character or a character beyond ASCII in its value, which no header can carry", key, name)
	case bytes.ContainsRune(value, ' '):
		return bad(v1alpha1.ReasonSecretKeyMalformed,
			"key %q of Secret %q has a space in its value, which no key has: put in the key alone, without a word such as Bearer before it", key, name)
	case len(value) > maxBytes:
		return bad(v1alpha1.ReasonSecretKeyMalformed, "key %q of Secret %q has %d bytes, and runtimes read at most %d", key, name, len(value), maxBytes)
	}
	return Verdict{OK: true, Reason: v1alpha1.ReasonResolved, Message: fmt.Sprintf("key %q of Secret %q is there", key, name)}
}

// NotFound is the verdict on a Secret that does not exist.
func NotFound(namespace, name string) Verdict {
	return bad(v1alpha1.ReasonSecretNotFound, "Secret %q does not exist in namespace %q", name, namespace)
}

// quoted reports whether a value begins and ends with the same quote.
func quoted(value []byte) bool {
	if len(value) < 2 || value[0] != value[len(value)-1] {
		return false
	}
	return value[0] == '"' || value[0] == '\'' || value[0] == '`'
}

func bad(reason, message string, args ...any) Verdict {
	return Verdict{Reason: reason, Message: fmt.Sprintf(message, args...)}
}
