// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/test/envtest"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// goldenFolder holds the cases of webhook/inject: each has a pod, the objects of
// its namespace, and what becomes of the pod.
const goldenFolder = "../../webhook/inject/testdata"

// neverStored are the cases whose pod or policy the API server refuses by itself,
// with what it says.
var neverStored = map[string]string{
	"mirror-pod":                         "must set spec.nodeName if mirror pod annotation is set", // a kubelet's own
	"policy-not-accepted":                "spec.defaultModel: Invalid value",                       // from before the validation
	"root-agent-in-restricted-namespace": "violates PodSecurity",                                   // the agent does
	// The agent itself exceeds, or has no limit where there must be one.
	"limit-range-raises-requests":                         "max limit to request ratio per Container",
	"limit-range-of-pods-says-nothing-of-a-container":     "maximum memory usage per Pod",
	"limit-range-in-a-guaranteed-pod-keeps-it-guaranteed": "maximum memory usage per Container",
}

// otherDefaults are the cases whose pod the API server's LimitRanger completes
// before the webhook sees it, so that something else is right: limits_test.go; and
// those with a hash over the names of namespaces: others_test.go.
var otherDefaults = []string{"limit-range-lowers-limits", "already-injected-and-rewritten-by-another-webhook-is-completed"}

// goldenOut is what a case expects.
type goldenOut struct {
	Inject   bool        `json:"inject"`
	Deny     []string    `json:"deny"`
	Warnings []string    `json:"warnings"`
	Pod      *corev1.Pod `json:"pod"`
}

// golden is a case in a namespace of its own.
type golden struct {
	*team
	folder string
	// twin is a namespace like it in which nobody asks for the runtime.
	twin string
	// rename gives the namespaces that the case names their names here.
	rename *strings.Replacer
}

var namespaceNames = regexp.MustCompile(`\b(agents|platform)\b`)

func TestGoldenPods(t *testing.T) {
	entries, err := os.ReadDir(goldenFolder)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, e := range entries {
		folder := filepath.Join(goldenFolder, e.Name())
		if _, err := os.Stat(filepath.Join(folder, "out.yaml")); err != nil || slices.Contains(otherDefaults, e.Name()) {
			continue // such as the corpus of a fuzz test
		}
		settings, err := os.ReadFile(filepath.Join(folder, "settings.yaml"))
		if err == nil {
			t.Run(e.Name(), func(t *testing.T) { withSettings(t, settings, func() { compareGolden(t, folder) }) })
			compared++
			continue
		}
		message, refused := neverStored[e.Name()]
		if !refused {
			compared++
		}
		t.Run(e.Name(), func(t *testing.T) {
			t.Parallel()
			if refused {
				refusesGolden(t, folder, message)
			} else {
				compareGolden(t, folder)
			}
		})
	}
	if compared < 55 {
		t.Errorf("%d cases are compared, want at least 55", compared)
	}
}

// withSettings runs a test while the operator has other settings.
func withSettings(t *testing.T, data []byte, run func()) {
	var settings inject.Settings
	if err := yaml.UnmarshalStrict(data, &settings); err != nil {
		t.Fatal(err)
	}
	restart := func(s inject.Settings) {
		if err := errors.Join(webhooks.end(), startWebhooks(s)); err != nil {
			t.Fatal(err)
		}
	}
	restart(settings)
	defer restart(inject.Settings{Image: runtimeImage})
	run()
}

// compareGolden creates a case's objects and its pod, and compares what is stored
// with what the case expects, completed by the API server in a namespace in
// which the operator is not called.
func compareGolden(t *testing.T, folder string) {
	g := newGolden(t, folder)
	if err := g.makeObjects(); err != nil {
		t.Fatal(err)
	}
	pod, want := &corev1.Pod{}, goldenOut{}
	g.read("pod.yaml", pod)
	g.read("out.yaml", &want)
	g.awaitLimitRange(pod, want.Pod)
	g.warned.all()
	err := g.try(pod)
	if got := g.warned.all(); !slices.Equal(got, want.Warnings) {
		t.Errorf("got warnings %q, want %q", got, want.Warnings)
	}
	if len(want.Deny) > 0 {
		g.denied(err, want.Deny)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if want.Pod == nil {
		want.Pod = &corev1.Pod{}
		g.read("pod.yaml", want.Pod)
	}
	g.complete(want.Pod)
	if diff := cmp.Diff(comparable(t, want.Pod), comparable(t, pod)); diff != "" {
		t.Errorf("the pod (-want +got):\n%s", diff)
	}
}

// refusesGolden sees that a case really cannot be stored.
func refusesGolden(t *testing.T, folder, message string) {
	g := newGolden(t, folder)
	pod, err := &corev1.Pod{}, g.makeObjects()
	if err == nil {
		g.read("pod.yaml", pod)
		unasked := pod.DeepCopy()
		delete(unasked.Labels, v1alpha1.InjectLabel)
		if g.try(unasked, client.DryRunAll) == nil {
			t.Error("the pod is stored where nobody asks for the runtime")
		}
		err = g.try(pod)
	}
	if err == nil || !strings.Contains(err.Error(), message) {
		t.Errorf("got %v, want a refusal with %q", err, message)
	}
}

func newGolden(t *testing.T, folder string) *golden {
	t.Helper()
	g := &golden{folder: folder}
	ns := &corev1.Namespace{}
	for _, data := range documents(t, filepath.Join(folder, "objects.yaml")) {
		if bytes.Contains(data, []byte("kind: Namespace\n")) {
			unmarshal(t, data, ns)
		}
	}
	var labels []string
	for key, value := range ns.Labels {
		labels = append(labels, key+"="+value)
	}
	g.team = newTeam(t, labels...)
	g.twin = newTeam(t).namespace
	g.rename = strings.NewReplacer("agents", g.namespace, "platform", "zz-"+g.namespace) // in the same order
	return g
}

// makeObjects creates what a case's objects.yaml holds, and the Secrets that its
// providers name.
func (g *golden) makeObjects() error {
	g.Helper()
	platform := g.rename.Replace("platform")
	if _, err := envtest.CreateNamespace(g.Context(), admin, platform); err != nil {
		return err
	}
	for _, name := range []string{"openai-key", "shared-key"} {
		g.make(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"token": []byte("sk-test")}})
	}
	for _, data := range documents(g.T, filepath.Join(g.folder, "objects.yaml")) {
		o := &unstructured.Unstructured{}
		unmarshal(g.T, g.renamed(data), o)
		if o.GetKind() == "Namespace" {
			continue
		}
		if err := admin.Create(g.Context(), o); err != nil {
			return err
		}
	}
	return nil
}

// awaitLimitRange waits until the operator has heard of the case's LimitRange, if
// it has one that makes a difference.
func (g *golden) awaitLimitRange(pod, want *corev1.Pod) {
	g.Helper()
	if !slices.ContainsFunc(documents(g.T, filepath.Join(g.folder, "objects.yaml")), func(data []byte) bool { return bytes.Contains(data, []byte("kind: LimitRange\n")) }) {
		return
	}
	eventually(g.T, "waiting for the operator to hear of the LimitRange", func() error {
		probe := pod.DeepCopy()
		if err := g.try(probe, client.DryRunAll); err != nil {
			return err
		}
		if got := runtimeOf(probe).Resources; !equality.Semantic.DeepEqual(got, runtimeOf(want).Resources) {
			return fmt.Errorf("the runtime has %v", got)
		}
		return nil
	})
}

func (g *golden) renamed(data []byte) []byte {
	return namespaceNames.ReplaceAllFunc(data, func(name []byte) []byte { return []byte(g.rename.Replace(string(name))) })
}

func (g *golden) read(file string, into any) {
	g.Helper()
	data, err := os.ReadFile(filepath.Join(g.folder, file))
	if err != nil {
		g.Fatal(err)
	}
	unmarshal(g.T, g.renamed(data), into)
}

func documents(t *testing.T, file string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		one, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
}

func unmarshal(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// complete makes a pod what the API server makes of it without the operator, in
// a dry run.
func (g *golden) complete(pod *corev1.Pod) {
	g.Helper()
	label, asks := pod.Labels[v1alpha1.InjectLabel]
	delete(pod.Labels, v1alpha1.InjectLabel)
	pod.Namespace = g.twin
	if err := g.Create(g.Context(), pod, client.DryRunAll); err != nil {
		g.Fatalf("the expected pod: %v", err)
	}
	if !asks {
		return
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[v1alpha1.InjectLabel] = label
}

// denied sees that a pod was refused by the operator, with every problem.
func (u *team) denied(err error, problems []string) {
	u.Helper()
	if !apierrors.IsForbidden(err) {
		u.Errorf("got %v, want a refusal", err)
		return
	}
	for _, problem := range problems {
		if !strings.Contains(err.Error(), problem) {
			u.Errorf("got %v, want also %q", err, problem)
		}
	}
}
