// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// It reads the files too: without that, `go test` would not run again when one changes.
func TestEveryPolicyIsInstalledFailsClosedAndIsBound(t *testing.T) {
	files, err := filepath.Glob("../../config/admissionpolicy/*_*.yaml")
	if err != nil || len(files) != 2 {
		t.Fatalf("got %v (%v), want the two files of policies", files, err)
	}
	for _, file := range append(files, "../../config/rbac/role.yaml", "../../config/rbac/secrets_role.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents := bytes.Split(data, []byte("\n---\n"))
		var written admissionv1.ValidatingAdmissionPolicy
		if err := yaml.Unmarshal(documents[0], &written); err != nil {
			t.Fatal(err)
		}
		if written.Kind != "ValidatingAdmissionPolicy" {
			continue
		}
		var installed admissionv1.ValidatingAdmissionPolicy
		if err := admin.Get(t.Context(), client.ObjectKey{Name: written.Name}, &installed); err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepDerivative(written.Spec, installed.Spec) {
			t.Errorf("%s: what is installed is not what the file says", file)
		}
		if installed.Spec.FailurePolicy == nil || *installed.Spec.FailurePolicy != admissionv1.Fail {
			t.Errorf("%s: the failure policy is %v, want Fail", file, installed.Spec.FailurePolicy)
		}
		var binding admissionv1.ValidatingAdmissionPolicyBinding
		if err := admin.Get(t.Context(), client.ObjectKey{Name: written.Name}, &binding); err != nil {
			t.Fatal(err)
		}
		if binding.Spec.PolicyName != written.Name || len(binding.Spec.ValidationActions) != 1 || binding.Spec.ValidationActions[0] != admissionv1.Deny {
			t.Errorf("%s: the binding is %+v, want one that denies", file, binding.Spec)
		}
	}
}
