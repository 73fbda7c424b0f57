// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/visionoperator/vision-operator/runtime/fault"
)

func TestDetailsUpToTheBoundAreKept(t *testing.T) {
	short := fault.New(fault.PolicyDenied, "", "m").With("field", "path").With("n", 7)
	exact := fault.New(fault.PolicyDenied, "", "m").With("x", strings.Repeat("é", fault.MaxDetails-len(`{"x":""}`)))
	for _, f := range []*fault.Fault{fault.New(fault.PolicyDenied, "", "m"), short, exact} {
		if got := f.Normalize(); got != f {
			t.Errorf("%v was replaced by %v", f.Details, got.Details)
		}
	}
}

func TestDetailsOverTheBoundAreReplacedByWhatIdentifiesThem(t *testing.T) {
	long := strings.Repeat("é", fault.MaxDetails)
	f := fault.New(fault.PolicyDenied, "Why", "m").Hint("h").With("field", "path").With("path", long)
	got := f.Normalize()
	if f.Details["path"] != long {
		t.Error("the original was changed")
	}
	if got.Reason != "Why" || got.Message != "m" || got.RecoveryHint != "h" {
		t.Errorf("the rest was changed: %+v", got)
	}
	text, err := json.Marshal(got.Details)
	if err != nil || utf8.RuneCount(text) > fault.MaxDetails || !utf8.Valid(text) {
		t.Errorf("%d characters, %v", utf8.RuneCount(text), err)
	}
	if got.Details["omitted"] != true || got.Details["field"] != "path" || got.Details["char_count"] != 1026 || len(got.Details["sha256"].(string)) != 64 {
		t.Errorf("details are %v", got.Details)
	}
	if !strings.HasPrefix(got.Details["preview"].(string), `{"field":"path","path":"éé`) {
		t.Errorf("preview is %q", got.Details["preview"])
	}
	if again := f.Normalize(); !reflect.DeepEqual(again, got) || got.Normalize() != got {
		t.Error("normalizing is not stable")
	}
}

func TestDetailsThatAreNoJSONAreLeftOut(t *testing.T) {
	got := fault.New(fault.PolicyDenied, "", "m").With("n", math.NaN()).Normalize()
	if _, err := json.Marshal(got); err != nil || got.Details["omitted"] != true {
		t.Errorf("%v: %v", got.Details, err)
	}
}
