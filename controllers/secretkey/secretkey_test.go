// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package secretkey

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

func TestAKeyIsJudgedAndNothingOfItIsTold(t *testing.T) {
	tests := map[string]struct {
		value  string
		reason string
	}{
		"a key":                     {"sk-proj_abc.DEF-123+/=", v1alpha1.ReasonResolved},
		"a space within":            {"Bearer abc", v1alpha1.ReasonResolved},
		"a quote at one end":        {`abc"`, v1alpha1.ReasonResolved},
		"one character":             {`"`, v1alpha1.ReasonResolved},
		"nothing":                   {"", v1alpha1.ReasonSecretKeyEmpty},
		"white space only":          {" \n", v1alpha1.ReasonSecretKeyEmpty},
		"a final newline":           {"abc\n", v1alpha1.ReasonSecretKeyMalformed},
		"a final carriage return":   {"abc\r\n", v1alpha1.ReasonSecretKeyMalformed},
		"a leading space":           {" abc", v1alpha1.ReasonSecretKeyMalformed},
		"double quotes":             {`"abc"`, v1alpha1.ReasonSecretKeyMalformed},
		"single quotes":             {`'abc'`, v1alpha1.ReasonSecretKeyMalformed},
		"a line break within":       {"abc\ndef", v1alpha1.ReasonSecretKeyMalformed},
		"a control character":       {"abc\x00def", v1alpha1.ReasonSecretKeyMalformed},
		"a key that is not in UTF8": {"abc\xff", v1alpha1.ReasonSecretKeyMalformed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"api-key": []byte(test.value)}}
			got := Judge(secret, "api-key")
			if got.Reason != test.reason || got.OK != (test.reason == v1alpha1.ReasonResolved) {
				t.Errorf("got %+v, want %s", got, test.reason)
			}
			if len(test.value) > 3 && strings.Contains(got.Message, strings.TrimSpace(test.value)) {
				t.Errorf("the message tells the value: %s", got.Message)
			}
		})
	}
	if got := Judge(&corev1.Secret{}, "api-key"); got.OK || got.Reason != v1alpha1.ReasonSecretKeyNotFound {
		t.Errorf("a Secret without the key: got %+v", got)
	}
}
