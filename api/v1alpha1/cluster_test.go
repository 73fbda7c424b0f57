// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/api/v1alpha1/validation"
)

func TestAnEmptyListReachesTheAPIServerThroughGoClients(t *testing.T) {
	for field, spec := range map[string]v1alpha1.VisionPolicySpec{
		"spec.allowedModels":           {AllowedModels: []string{}},
		"spec.providers":               {Providers: []v1alpha1.ProviderReference{}},
		"spec.limits.image.mediaTypes": {Limits: &v1alpha1.Limits{Image: &v1alpha1.ImageLimits{MediaTypes: []string{}}}},
		"spec.runtime.workspaces":      {Runtime: &v1alpha1.Runtime{Workspaces: []string{}}},
		"spec.injection.tools":         {Injection: &v1alpha1.Injection{Tools: []string{}}},
	} {
		t.Run(field, func(t *testing.T) {
			policy := &v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "empty", Namespace: "default"}, Spec: spec}
			if err := api.Create(t.Context(), policy.DeepCopy(), client.DryRunAll); !names(err, field, "at least 1 items") {
				t.Errorf("create: %v", err)
			}
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(policy)
			if err != nil {
				t.Fatal(err)
			}
			u := &unstructured.Unstructured{Object: object}
			u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("VisionPolicy"))
			if err := api.Create(t.Context(), u, client.DryRunAll); !names(err, field, "at least 1 items") {
				t.Errorf("create of the converted object: %v", err)
			}
			if len(validation.Policy(policy)) == 0 {
				t.Error("the validator accepted it")
			}
		})
	}
}

func TestAnAbsentAllowListStaysAbsent(t *testing.T) {
	policy := &v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "absent", Namespace: namespace(t.Context(), t, "absent-lists")}}
	if err := api.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("VisionPolicy"))
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(policy), stored); err != nil {
		t.Fatal(err)
	}
	if spec := stored.Object["spec"].(map[string]any); len(spec) > 0 {
		t.Errorf("an empty spec came back as %v", spec)
	}
}

func TestRefusalsSeenThroughKubectlNameTheFieldAndTheRule(t *testing.T) {
	for _, c := range []struct{ name, base, edit, field, words string }{
		{"two credentials", baseProvider, "spec: {credentials: {secretRef: {name: a, key: b}}}", "spec.credentials", "set exactly one of secretRef and none"},
		{"plain http to a public name", baseProvider, "spec: {endpoints: [{name: a, url: 'http://api.openai.com/v1'}]}", "spec.endpoints[0].url", wordsPlain},
		{"userinfo", baseProvider, "spec: {endpoints: [{name: a, url: 'https://u:p@api.openai.com/v1'}]}", "spec.endpoints[0].url", wordsUser},
		{"link-local", baseProvider, "spec: {endpoints: [{name: a, url: 'https://169.254.169.254'}]}", "spec.endpoints[0].url", wordsRefused},
		{"link-local as a number", baseProvider, "spec: {endpoints: [{name: a, url: 'https://2852039166'}]}", "spec.endpoints[0].url", wordsHost},
		{"a bad route", basePolicy, "spec: {defaultModel: tesseract}", "spec.defaultModel", "must be a route, provider@endpoint/model"},
		{"a zero limit", basePolicy, "spec: {limits: {image: {maxBytes: 0}}}", "spec.limits.image.maxBytes", "greater than or equal to 1"},
		{"an empty allow-list", basePolicy, "spec: {allowedModels: []}", "spec.allowedModels", "an empty allow-list would allow no model at all"},
		{"a misspelt field", basePolicy, "spec: {defaultModell: auto}", "spec.defaultModell", "unknown field"},
	} {
		t.Run(c.name, func(t *testing.T) {
			manifest, err := edited(t, c.base, c.edit).MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			_, err = cluster.Kubectl(t.Context(), string(manifest), "apply", "--dry-run=server", "-f", "-")
			if err == nil || !strings.Contains(err.Error(), c.field) || !strings.Contains(err.Error(), c.words) {
				t.Errorf("kubectl says: %v", err)
			}
		})
	}
}

func TestKubectlShowsConditionsByColumnAndFindsBothKindsByCategory(t *testing.T) {
	ns := namespace(t.Context(), t, "columns")
	provider, policy := &v1alpha1.VisionProvider{}, &v1alpha1.VisionPolicy{}
	for base, into := range map[string]client.Object{baseProvider: provider, basePolicy: policy} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(edited(t, base, "metadata: {namespace: "+ns+"}").Object, into); err != nil {
			t.Fatal(err)
		}
		if err := api.Create(t.Context(), into); err != nil {
			t.Fatal(err)
		}
	}
	condition := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: "Tested", Message: "for the columns", LastTransitionTime: metav1.Now()}
	}
	provider.Status.Conditions = []metav1.Condition{condition("Accepted", "True"), condition("CredentialsResolved", "Unknown"), condition("Ready", "False")}
	policy.Status = v1alpha1.VisionPolicyStatus{
		Conditions:   []metav1.Condition{condition("Accepted", "True"), condition("Programmed", "Unknown"), condition("Ready", "False")},
		DefaultRoute: "ocr@local/tesseract",
		Candidates:   []v1alpha1.RouteCandidate{{Route: "ocr@local/tesseract", Usable: true, Reason: "ImageInputDeclared"}},
		Router:       &v1alpha1.RouterStatus{ConfigMap: "vision-router", Digest: strings.Repeat("0", 64)},
	}
	if err := errors.Join(api.Status().Update(t.Context(), provider), api.Status().Update(t.Context(), policy)); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string][]string{
		"get vprov":          {"NAME TRANSPORT ACCEPTED CREDENTIALS READY AGE", "ocr OpenAIChatCompletions True Unknown False"},
		"get vprov -o wide":  {"NAME TRANSPORT ACCEPTED CREDENTIALS READY REASON AGE", "False Tested"},
		"get vpol":           {"NAME DEFAULT ROUTE ACCEPTED PROGRAMMED READY AGE", "agents ocr@local/tesseract True Unknown False"},
		"get vpol -o wide":   {"READY REASON AGE", "False Tested"},
		"get vision -o name": {"visionpolicy.visionoperator.dev/agents", "visionprovider.visionoperator.dev/ocr"},
	} {
		out, err := cluster.Kubectl(t.Context(), "", append(strings.Fields(args), "-n", ns)...)
		text := strings.Join(strings.Fields(out), " ")
		for _, w := range want {
			if err != nil || !strings.Contains(text, w) {
				t.Errorf("kubectl %s says no %q: %v\n%s", args, w, err, out)
			}
		}
	}
}

func TestStatusIsASubresource(t *testing.T) {
	provider := &v1alpha1.VisionProvider{}
	object := edited(t, baseProvider, "metadata: {namespace: "+namespace(t.Context(), t, "subresource")+"}")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, provider); err != nil {
		t.Fatal(err)
	}
	provider.Status.CredentialsResourceVersion = "1"
	if err := api.Create(t.Context(), provider); err != nil {
		t.Fatal(err)
	}
	if provider.Status.CredentialsResourceVersion != "" || provider.Generation != 1 {
		t.Errorf("creating wrote the status: %+v", provider)
	}
	provider.Status.CredentialsResourceVersion = "2"
	provider.Spec.Endpoints[0].Name = "elsewhere"
	if err := api.Status().Update(t.Context(), provider); err != nil {
		t.Fatal(err)
	}
	if provider.Status.CredentialsResourceVersion != "2" || provider.Spec.Endpoints[0].Name != "local" || provider.Generation != 1 {
		t.Errorf("updating the status touched more than it: %+v", provider)
	}
}

func TestKubectlExplainsFields(t *testing.T) {
	for path, words := range map[string]string{
		"visionprovider.spec.endpoints.url":            "no query, no fragment",
		"visionpolicy.spec.limits.image.maxBytes":      "20971520",
		"visionpolicy.spec.allowedModels":              "Absent: no restriction",
		"visionprovider.spec.models.limits.mediaTypes": "image/png",
	} {
		out, err := cluster.Kubectl(t.Context(), "", "explain", path)
		if err != nil || !strings.Contains(strings.Join(strings.Fields(out), " "), words) {
			t.Errorf("kubectl explain %s: %v\n%s", path, err, out)
		}
	}
}

func TestTheSamplesApplyAndApplyAgain(t *testing.T) {
	samples := filepath.Join("..", "..", "config", "samples")
	for range 2 {
		if _, err := cluster.Kubectl(t.Context(), "", "apply", "-k", samples); err != nil {
			t.Fatal(err)
		}
	}
	pod := &corev1.Pod{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "vision-demo", Name: "agent"}, pod); err != nil {
		t.Fatal(err)
	}
	if pod.Labels[v1alpha1.InjectLabel] != v1alpha1.InjectEnabled {
		t.Errorf("the agent's labels are %v", pod.Labels)
	}
	ns := namespace(t.Context(), t, "more-providers")
	for _, folder := range []string{"providers", "policies"} {
		if _, err := cluster.Kubectl(t.Context(), "", "apply", "-n", ns, "-f", filepath.Join(samples, folder)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheObjectsOfTheREADMEAreAccepted(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	objects := 0
	for _, block := range strings.Split(string(readme), "```yaml\n")[1:] {
		manifest, _, _ := strings.Cut(block, "```")
		namespaced := strings.ReplaceAll(manifest, "namespace: team-a", "namespace: "+namespace(t.Context(), t, "readme"))
		out, err := cluster.Kubectl(t.Context(), namespaced, "apply", "--dry-run=server", "-f", "-")
		if err != nil {
			t.Fatal(err)
		}
		objects += strings.Count(out, "created")
	}
	if objects < 2 {
		t.Errorf("%d objects were found in README.md, want a provider and a policy", objects)
	}
}

// TestTheSamplesAreFaultless holds every sample of our kinds against the
// validators: no problem, and no warning but the ones that a sample's own
// comment gives.
func TestTheSamplesAreFaultless(t *testing.T) {
	samples := filepath.Join("..", "..", "config", "samples")
	files, err := filepath.Glob(filepath.Join(samples, "*.yaml"))
	more, err2 := filepath.Glob(filepath.Join(samples, "*", "*.yaml"))
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	inTheClear := []string{"ollama.yaml", "lmstudio.yaml", "vllm.yaml", "embedded.yaml"}
	kinds := 0
	for _, file := range append(files, more...) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var warnings []string
		var problems error
		switch {
		case bytes.Contains(data, []byte("kind: VisionProvider\n")):
			p := &v1alpha1.VisionProvider{}
			if err := yaml.UnmarshalStrict(data, p); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			problems, warnings = validation.Provider(p).ToAggregate(), validation.ProviderWarnings(p)
		case bytes.Contains(data, []byte("kind: VisionPolicy\n")):
			p := &v1alpha1.VisionPolicy{}
			if err := yaml.UnmarshalStrict(data, p); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			problems, warnings = validation.Policy(p).ToAggregate(), validation.PolicyWarnings(p)
		default:
			continue
		}
		kinds++
		if problems != nil {
			t.Errorf("%s: %v", file, problems)
		}
		warnings = slices.DeleteFunc(warnings, func(w string) bool {
			return slices.Contains(inTheClear, filepath.Base(file)) && strings.Contains(w, "images travel in the clear")
		})
		if len(warnings) > 0 {
			t.Errorf("%s: %v", file, warnings)
		}
	}
	if kinds < 12 {
		t.Errorf("only %d samples were found", kinds)
	}
}
