// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// generator makes random pods, most of which an API server stores: the same for
// the same seed.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 0))} }

// in reports true once in n times.
func (g generator) in(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

// maybe is a pointer to one of some values, or nil.
func maybe[T any](g generator, from ...T) *T {
	if g.in(2) {
		return nil
	}
	return new(pick(g, from...))
}

// pod makes one.
func (g generator) pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "random", Labels: map[string]string{"app": "random"}, Annotations: g.annotations()}}
	spec := &pod.Spec
	for i := range g.IntN(6) {
		spec.Volumes = append(spec.Volumes, g.volume(fmt.Sprintf("v%d", i)))
	}
	if g.in(40) {
		spec.Volumes = append(spec.Volumes, g.volume("vision-runtime-cache"))
	}
	class, limited := pick(g, loose, loose, guaranteed, bounded), g.in(3)
	for i := range g.IntN(4) {
		spec.InitContainers = append(spec.InitContainers, g.container(fmt.Sprintf("init%d", i), spec.Volumes, class, limited))
		g.asInit(&spec.InitContainers[i])
	}
	for i := range 1 + g.IntN(3) {
		spec.Containers = append(spec.Containers, g.container(fmt.Sprintf("c%d", i), spec.Volumes, class, limited))
	}
	if g.in(40) {
		spec.Containers[0].Name = inject.ContainerName
	}
	g.security(spec)
	g.placement(spec)
	g.lifetime(spec)
	g.network(spec)
	if g.in(10) {
		spec.Resources = &corev1.ResourceRequirements{Limits: amounts("cpu=8", "memory=16Gi"), Requests: maybeAmounts(g, "cpu=6", "memory=12Gi")}
		if g.in(2) { // its limits are those of its containers then, if all have some
			spec.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu=8", "memory=16Gi")}
		}
	}
	if g.in(20) {
		windows(spec)
	}
	return pod
}

func maybeAmounts(g generator, list ...string) corev1.ResourceList {
	if g.in(2) {
		return nil
	}
	return amounts(list...)
}

func (g generator) annotations() map[string]string {
	if !g.in(4) {
		return nil
	}
	return map[string]string{v1alpha1.WorkspacesAnnotation: pick(g, "", "/desk", "/desk/a, /data", "/nowhere", "/proc,relative,/", "\x01,/data")}
}

// paths are where containers mount volumes: among them those of our container.
var paths = []string{
	"/desk", "/desk/", "/desk/a", "/data", "/data/../data/x", "/", "/tmp", "/var/cache/vision", "/etc/vision/router", "/var/run/vision/secrets",
	"/var/cache", "/vision-runtime", "/run/x", "/home/agent", "/mnt/$(POD)", "/mnt/with space", "/var/run/secrets/kubernetes.io/serviceaccount", "relative",
}

func (g generator) container(name string, volumes []corev1.Volume, class class, limited bool) corev1.Container {
	c := corev1.Container{
		Name: name, Image: pick(g, "agent:1", "registry.example/agent@sha256:0000000000000000000000000000000000000000000000000000000000000000"),
		ImagePullPolicy: pick(g, "", corev1.PullAlways, corev1.PullNever), WorkingDir: pick(g, "", "/desk"), Stdin: g.in(5), TTY: g.in(5),
		Env: g.env(name), SecurityContext: g.containerSecurity(), Resources: g.resources(class, limited),
		TerminationMessagePath: pick(g, "", "/dev/end"), TerminationMessagePolicy: pick(g, "", corev1.TerminationMessageFallbackToLogsOnError),
	}
	if g.in(3) {
		c.Command, c.Args = []string{"/agent", "$(POD)"}, []string{"--x", "$$(Y)"}
	}
	for range g.IntN(3) {
		c.EnvFrom = append(c.EnvFrom, pick(g,
			corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
			corev1.EnvFromSource{Prefix: "X_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Optional: new(true)}}))
	}
	if g.in(3) {
		c.Ports = []corev1.ContainerPort{{
			ContainerPort: pick[int32](g, 80, 8080, 9090, inject.Port, inject.HealthPort), Name: pick(g, "", "http", "vision-health"),
			Protocol: pick(g, "", corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP), HostPort: pick[int32](g, 0, 0, 0, 9090),
		}}
	}
	if g.in(4) {
		c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired}}
	}
	if g.in(4) {
		c.ReadinessProbe, c.LivenessProbe = probe(), probe()
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	}
	for _, v := range volumes {
		if g.in(3) {
			continue
		}
		if v.PersistentVolumeClaim != nil && g.in(10) {
			c.VolumeDevices = append(c.VolumeDevices, corev1.VolumeDevice{Name: v.Name, DevicePath: "/dev/" + v.Name})
			continue
		}
		c.VolumeMounts = append(c.VolumeMounts, g.mount(v))
	}
	return c
}

func probe() *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}}
}

func (g generator) mount(v corev1.Volume) corev1.VolumeMount {
	m := corev1.VolumeMount{Name: v.Name, MountPath: pick(g, paths...), ReadOnly: g.in(4)}
	if g.in(3) {
		m.MountPath = "/only/" + v.Name // so that many pods have no path twice
	}
	switch g.IntN(6) {
	case 0:
		m.SubPath = pick(g, "a", "a/b", "$(POD)")
	case 1:
		m.SubPathExpr = pick(g, "$(POD)", "runs/$(DIR)", "$(FROM_SOURCE)", "$$(POD)", "plain", "$(CPU)/$(NODE)")
	case 2:
		m.MountPropagation = new(pick(g, corev1.MountPropagationNone, corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional))
	case 3:
		if m.ReadOnly {
			m.RecursiveReadOnly = new(pick(g, corev1.RecursiveReadOnlyIfPossible, corev1.RecursiveReadOnlyDisabled))
		}
	}
	return m
}

func (g generator) env(container string) []corev1.EnvVar {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	all := []corev1.EnvVar{
		field("POD", "metadata.name"), field("NODE", "spec.nodeName"), {Name: "DIR", Value: "x/$(POD)"}, {Name: "DIR", Value: "$(DIR)/again"},
		{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu", ContainerName: pick(g, "", container)}}},
		{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Key: "k"}}},
		{Name: "VISION_RUNTIME_URL", Value: "http://mine"}, {Name: "OPENAI_API_KEY", Value: "$(KEY)"}, {Name: "ANTHROPIC_BASE_URL", Value: ""},
		{Name: "odd.name-1", Value: "$("}, {Name: "EMPTY"},
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:g.IntN(len(all)+1)]
}

func (g generator) containerSecurity() *corev1.SecurityContext {
	if g.in(3) {
		return nil
	}
	sc := &corev1.SecurityContext{
		RunAsUser: maybe[int64](g, 0, 1000, 65532), RunAsGroup: maybe[int64](g, 0, 1000), RunAsNonRoot: maybe(g, false, false, true),
		ReadOnlyRootFilesystem: maybe(g, true, false), AllowPrivilegeEscalation: maybe(g, true, false), Privileged: maybe(g, false, false, true),
	}
	if g.in(4) {
		sc.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE"}}
	}
	if g.in(4) {
		sc.SeccompProfile = &corev1.SeccompProfile{Type: pick(g, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)}
	}
	if g.in(8) {
		sc.ProcMount = new(pick(g, corev1.DefaultProcMount, corev1.UnmaskedProcMount))
	}
	return sc
}

// class says what the containers of a pod have in common: nothing, requests equal to
// limits, or limits twice as large, as quotas and LimitRanges want them.
type class int

const (
	loose class = iota
	guaranteed
	bounded
)

func (g generator) resources(class class, limited bool) corev1.ResourceRequirements {
	var r corev1.ResourceRequirements
	switch class {
	case guaranteed:
		r.Limits = amounts("cpu=500m", "memory=256Mi")
		r.Requests = maybeAmounts(g, "cpu=500m", "memory=256Mi")
	case bounded:
		r.Limits, r.Requests = amounts("cpu=400m", "memory=256Mi"), amounts("cpu=200m", "memory=128Mi")
	default:
		r.Requests = maybeAmounts(g, pick(g, "cpu=10m", "memory=16Mi", "cpu=0"))
		r.Limits = maybeAmounts(g, pick(g, "cpu=2", "memory=1Gi", "memory=64Mi"), pick(g, "cpu=4", "memory=2Gi"))
	}
	if limited {
		if r.Limits == nil {
			r.Limits = corev1.ResourceList{}
		}
		r.Limits[corev1.ResourceEphemeralStorage] = resource.MustParse("2Gi")
		if g.in(5) {
			r.Limits["example.com/gpu"] = resource.MustParse("1")
		}
	}
	return r
}
