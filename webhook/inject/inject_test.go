// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// inject is both steps.
func inject(in Input) (*corev1.Pod, Plan) {
	plan := Decide(in)
	return Apply(in.Pod, plan), plan
}

// checkIdempotent fails when a second injection decides otherwise or changes anything.
func checkIdempotent(t *testing.T, in Input) {
	t.Helper()
	before, err := json.Marshal(in.Pod)
	if err != nil {
		t.Fatal(err)
	}
	once, first := inject(in)
	if after, _ := json.Marshal(in.Pod); string(before) != string(after) {
		t.Fatalf("the given pod was changed:\n%s", cmp.Diff(string(before), string(after)))
	}
	in.Pod = once
	twice, second := inject(in)
	if first.Inject != second.Inject || first.Hash != second.Hash || !reflect.DeepEqual(first.Deny, second.Deny) {
		t.Fatalf("the second decision differs: injected %v then %v, hash %s then %s, denied %v then %v",
			first.Inject, second.Inject, first.Hash, second.Hash, first.Deny, second.Deny)
	}
	if !reflect.DeepEqual(once, twice) {
		t.Fatalf("Apply(Apply(pod)) differs from Apply(pod):\n%s", cmp.Diff(once, twice))
	}
}

func TestASecondInjectionOfEveryGoldenPodChangesNothing(t *testing.T) {
	for _, name := range goldenNames(t) {
		t.Run(name, func(t *testing.T) { checkIdempotent(t, readGolden(t, filepath.Join(goldenFolder, name))) })
	}
}

func TestASecondInjectionOfAnyRandomPodChangesNothing(t *testing.T) {
	base := baseInput(t)
	injected := 0
	for seed := range int64(400) {
		in := base
		in.Pod, in.NamespaceLabels = randomPod(seed), randomNamespaceLabels(seed)
		checkIdempotent(t, in)
		if Decide(in).Inject {
			injected++
		}
	}
	if injected < 100 {
		t.Errorf("only %d of 400 random pods were injected: the generator has lost its reach", injected)
	}
}

// randomPod fills a pod at random, from few names so that they meet.
func randomPod(seed int64) *corev1.Pod {
	r := rand.New(rand.NewSource(seed))
	pick := func(s ...string) string { return s[r.Intn(len(s))] }
	fill := randfill.NewWithSeed(seed).NilChance(0.7).NumElements(0, 3).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(3), resource.DecimalSI)
		},
		func(entries *[]metav1.ManagedFieldsEntry, _ randfill.Continue) { *entries = nil },
		func(m *corev1.VolumeMount, c randfill.Continue) {
			c.FillNoCustom(m)
			m.Name = pick("a", "b", "c", cacheVolume)
			m.MountPath = pick("/desk", "/desk/", "/desk/in", "/data", "/", "/etc/x", "relative", "/$(HOME)")
			m.SubPathExpr = pick("", "", "$(POD)", "$(VISION_RUNTIME_URL)", "$$(POD)", "x$(")
		},
		func(e *corev1.EnvVar, c randfill.Continue) {
			c.FillNoCustom(e)
			e.Name = pick("POD", "HOME", compile.EnvRuntimeURL, "OTHER")
			e.Value = pick("", "v", "$(HOME)", "$(VISION_MCP_URL)", "$(POD)")
		},
	)
	pod := &corev1.Pod{}
	fill.Fill(pod)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[v1alpha1.InjectLabel] = v1alpha1.InjectEnabled
	pod.Spec.HostNetwork = r.Intn(10) == 0
	if r.Intn(2) == 0 {
		pod.Spec.NodeSelector = nil
	}
	for i, name := range []string{"a", "b", "c"} {
		v := corev1.Volume{}
		fill.Fill(&v)
		v.Name = name
		if i < 2 && r.Intn(3) > 0 {
			v.VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, v)
	}
	if len(pod.Spec.Containers) == 0 {
		pod.Spec.Containers = []corev1.Container{{Name: "agent"}}
	}
	for i := range pod.Spec.Containers {
		for range r.Intn(5) {
			m := corev1.VolumeMount{Name: pick("a", "b", "c"), MountPath: pick("/desk", "/desk/in", "/desk/in/", "/data"), ReadOnly: r.Intn(5) == 0}
			m.SubPath = pick("", "", "s", "s/t")
			pod.Spec.Containers[i].VolumeMounts = append(pod.Spec.Containers[i].VolumeMounts, m)
		}
	}
	if r.Intn(3) == 0 {
		pod.Annotations = map[string]string{v1alpha1.WorkspacesAnnotation: pick("/desk", "", "/desk/in,/data", "x", "/,,/data/deep")}
	}
	if r.Intn(4) == 0 {
		pod.Annotations = map[string]string{v1alpha1.InjectionAnnotation: pick("{", `{"hash":"x"}`, `{}`, "null")}
	}
	return pod
}

func randomNamespaceLabels(seed int64) map[string]string {
	if seed%3 == 0 {
		return map[string]string{podSecurityEnforce: podSecurityRestricted}
	}
	return nil
}

func baseInput(t testing.TB) Input {
	t.Helper()
	return readGolden(t, filepath.Join(goldenFolder, "labelled-pod-with-emptydir"))
}

func TestAContainerThatAnotherWebhookRewroteIsLeftAsItIs(t *testing.T) {
	in := baseInput(t)
	once, _ := inject(in)
	rewritten := once.DeepCopy()
	i := len(rewritten.Spec.InitContainers) - 1
	rewritten.Spec.InitContainers[i].Image = "mirror.example/vision-runtime:v1"
	rewritten.Spec.InitContainers = append(rewritten.Spec.InitContainers, corev1.Container{Name: "late"})
	// The mesh's proxy comes first, and might be taken for the agent.
	rewritten.Spec.Containers = slices.Insert(rewritten.Spec.Containers, 0, corev1.Container{
		Name: "mesh", VolumeMounts: []corev1.VolumeMount{{Name: rewritten.Spec.Volumes[0].Name, MountPath: "/mesh"}},
	})
	rewritten.Spec.Volumes = rewritten.Spec.Volumes[:1]

	in.Pod = rewritten
	again, _ := inject(in)

	if diff := cmp.Diff(rewritten.Spec.InitContainers, again.Spec.InitContainers); diff != "" {
		t.Errorf("init containers changed:\n%s", diff)
	}
	if !hasEnv(again.Spec.Containers[0].Env, compile.EnvRuntimeURL) {
		t.Error("the container that came late got no environment")
	}
	if diff := cmp.Diff(once.Spec.Volumes, again.Spec.Volumes); diff != "" {
		t.Errorf("the volumes that went missing were not completed:\n%s", diff)
	}
}

func TestTheHashFollowsWhatTheContainerIs(t *testing.T) {
	in := baseInput(t)
	before := Decide(in).Hash
	in.Settings.Image = "registry.example/vision-runtime:v2"
	if after := Decide(in).Hash; after == before {
		t.Errorf("another image has the same hash %s", after)
	}
}

func TestAKeyOfAnotherNamespaceIsToldAndNotMounted(t *testing.T) {
	in := baseInput(t)
	in.Compiled = compile.Output{
		Document: &router.Document{
			Profiles: []router.Profile{{ID: "policy/default", Providers: []router.ProviderUse{{Alias: "x", Provider: "platform/shared"}}}},
			Providers: []router.Provider{
				{Name: "platform/shared", Credential: &router.Credential{Namespace: "platform", Secret: "s", Key: "k", File: "platform/shared"}},
				{Name: "agents/unused", Credential: &router.Credential{Namespace: "agents", Secret: "s", Key: "k", File: "agents/unused"}},
			},
		},
		Pods:     map[string]compile.PodProfile{"policy/default": {}},
		Policies: map[string]compile.PolicyVerdict{"default": {Profile: "policy/default", DefaultRoute: "x", ResolvedRefs: compile.Verdict{OK: true}}},
	}
	plan := Decide(in)
	if len(plan.Notes) != 1 || plan.Notes[0].Reason != ReasonCredentialNotMounted || !strings.Contains(plan.Notes[0].Message, "platform/shared") {
		t.Errorf("got notes %v, want one CredentialNotMounted for platform/shared", plan.Notes)
	}
	for _, v := range plan.Volumes {
		if v.Name == secretsVolume && len(v.Projected.Sources) != 0 {
			t.Errorf("got sources %v, want none: one key is elsewhere and the other not of the profile", v.Projected.Sources)
		}
	}

	verdict := in.Compiled.Policies["default"]
	verdict.DefaultProvider = "platform/shared"
	in.Compiled.Policies["default"] = verdict
	in.Compiled.Pods["policy/default"] = compile.PodProfile{Admission: v1alpha1.AdmissionEnforce}
	if plan := Decide(in); len(plan.Deny) != 1 || plan.Deny[0].Reason != ReasonCredentialNotMounted {
		t.Errorf("Enforce denies %v, want the default model's key that cannot be mounted", plan.Deny)
	}
}

func TestABaselineServesWhereNoPolicySelects(t *testing.T) {
	in := baseInput(t)
	baseline := v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "vision-system", Name: "platform"}}
	baseline.Spec.NamespaceSelector = &metav1.LabelSelector{}
	objects := compile.Input{Namespace: in.Namespace, NamespaceLabels: in.NamespaceLabels, OperatorNamespace: "vision-system",
		Policies: []v1alpha1.VisionPolicy{baseline}}
	in.Policies, in.Compiled = compile.Servers(objects), compile.Compile(objects)
	if plan := Decide(in); !plan.Inject || plan.Profile != "baseline/platform" {
		t.Errorf("got injected %v with profile %q, want baseline/platform", plan.Inject, plan.Profile)
	}
	in.Pod.Annotations = map[string]string{v1alpha1.PolicyAnnotation: "gone"}
	if plan := Decide(in); plan.Inject {
		t.Error("a pod that pins a policy which does not exist fell to the baseline")
	}
}

func TestReferencesFollowKubernetesExpansion(t *testing.T) {
	for expr, want := range map[string][]string{
		"": nil, "plain": nil, "$(A)": {"A"}, "a/$(A)-$(B)": {"A", "B"}, "$$(A)": nil,
		"$$$(A)": {"A"}, "$(A": nil, "$": nil, "$x$(A)": {"A"},
	} {
		if got := references(expr); !reflect.DeepEqual(got, want) {
			t.Errorf("references(%q): got %v, want %v", expr, got, want)
		}
	}
}

func TestReservedPlacesAreNoWorkspaces(t *testing.T) {
	for dir, want := range map[string]bool{
		"/": true, "/proc": true, "/proc/1": true, "/var/run/secrets": true, "/var": true, "/run/x": true, "/usr": true,
		"/etc/vision/router": true, "/vision-runtime": true, "/var/cache": true, "/dev/shm": true,
		"/desk": false, "/var/lib/agent": false, "/usr/src/app": false, "/processes": false, "/vision-runtime-data": false, "/tmp": false,
	} {
		if got := isReserved(dir); got != want {
			t.Errorf("isReserved(%s) = %v, want %v", dir, got, want)
		}
	}
}

func FuzzInjectNeverPanicsAndIsIdempotent(f *testing.F) {
	for _, name := range goldenNames(f) {
		in := readGolden(f, filepath.Join(goldenFolder, name))
		data, err := json.Marshal(in.Pod)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	base := baseInput(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		pod := &corev1.Pod{}
		if json.Unmarshal(data, pod) != nil {
			return
		}
		in := base
		in.Pod = pod
		in.NamespaceLabels = map[string]string{v1alpha1.InjectLabel: v1alpha1.InjectEnabled}
		checkIdempotent(t, in)
		checkPatch(t, in)
		checkUntouched(t, in)
	})
}

func FuzzParseInjection(f *testing.F) {
	f.Add(`{"profile":"policy/default","hash":"sha256:00"}`)
	f.Add(`{`)
	f.Fuzz(func(t *testing.T, value string) {
		i, err := ParseInjection(value)
		if err != nil {
			return
		}
		again, err := ParseInjection(annotation(Plan{Profile: i.Profile, Hash: i.Hash}))
		if err != nil || again.Profile != strings.ToValidUTF8(i.Profile, "\uFFFD") {
			t.Errorf("%q does not survive writing: got %+v, %v", value, again, err)
		}
	})
}

// BenchmarkInject is one pod's way through both steps; the JSON patch is the rim's.
func BenchmarkInject(b *testing.B) {
	for _, name := range []string{"labelled-pod-with-emptydir", "default-workspaces-leave-out-other-volumes"} {
		b.Run(name, func(b *testing.B) {
			in := readGolden(b, filepath.Join(goldenFolder, name))
			b.ReportAllocs()
			for b.Loop() {
				if _, plan := inject(in); !plan.Inject {
					b.Fatal(fmt.Sprint(plan.Notes))
				}
			}
		})
	}
}
