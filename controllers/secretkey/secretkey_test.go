// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package secretkey

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
)

func TestAKeyIsJudgedAndNothingOfItIsTold(t *testing.T) {
	tests := map[string]struct {
		value  string
		reason string
	}{
		"a key":                     {"sk-proj_abc.DEF-123+/=", v1alpha1.ReasonResolved},
		"a space within":            {"Bearer abc", v1alpha1.ReasonSecretKeyMalformed},
		"a tab within":              {"abc\tdef", v1alpha1.ReasonSecretKeyMalformed},
		"the longest key":           {strings.Repeat("k", 64<<10), v1alpha1.ReasonResolved},
		"a key that is too long":    {strings.Repeat("k", 64<<10+1), v1alpha1.ReasonSecretKeyMalformed},
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
	if got := Judge(&corev1.Secret{Data: map[string][]byte{"api-key": []byte("a b")}}, "api-key"); !strings.Contains(got.Message, "Bearer") {
		t.Errorf("the message does not tell what most often is wrong: %s", got.Message)
	}
	if got := Judge(&corev1.Secret{}, "api-key"); got.OK || got.Reason != v1alpha1.ReasonSecretKeyNotFound {
		t.Errorf("a Secret without the key: got %+v", got)
	}
}

// What is told to be good must be good to runtimes, which read the same bytes from a
// file, and which nobody asks before a call fails.
func FuzzRuntimesTakeEveryKeyThatIsFoundGood(f *testing.F) {
	for _, value := range []string{"sk-abc", "Bearer abc", "abc\n", "\"abc", "abc\xff", "\u00a0abc", "abc\u2028", ""} {
		f.Add([]byte(value))
	}
	path := filepath.Join(f.TempDir(), "key")
	f.Fuzz(func(t *testing.T, value []byte) {
		if !Judge(&corev1.Secret{Data: map[string][]byte{"k": value}}, "k").OK {
			return
		}
		if err := os.WriteFile(path, value, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := transport.KeyFile(path, "team/cloud")(); err != nil || got.Reveal() != string(value) {
			t.Errorf("a runtime reads %q otherwise: %v", value, err)
		}
	})
}
