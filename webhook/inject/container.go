// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// What the injected container is called and where things are in it.
const (
	// ContainerName is the init container that stays: the native sidecar.
	ContainerName = "vision-runtime"
	// Command is the runtime image's entry point, stated so that an image built
	// otherwise is found out at once.
	Command = "/vision-runtime"
	// Port serves agents, on loopback.
	Port = 8970
	// HealthPort serves probes and metrics.
	HealthPort = 8971

	routerDirectory  = "/etc/vision/router"
	caDirectory      = "/etc/vision/ca"
	secretsDirectory = "/var/run/vision/secrets"
	cacheDirectory   = "/var/cache/vision"
	// tokenDirectory is where the API server mounts a service account token into
	// every container that mounts nothing else there.
	tokenDirectory = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// Volumes that injection adds to a pod.
const (
	routerVolume  = "vision-runtime-router"
	secretsVolume = "vision-runtime-secrets"
	cacheVolume   = "vision-runtime-cache"
	tokenVolume   = "vision-runtime-no-token"
	caVolume      = "vision-runtime-ca"
)

// isOurVolume reports whether injection owns a volume's name.
func isOurVolume(name string) bool {
	switch name {
	case routerVolume, secretsVolume, cacheVolume, tokenVolume, caVolume:
		return true
	}
	return false
}

// container is the whole desired container.
func (d *decision) container() corev1.Container {
	always := corev1.ContainerRestartPolicyAlways
	return corev1.Container{
		Name:            ContainerName,
		Image:           d.Settings.Image,
		ImagePullPolicy: d.Settings.PullPolicy,
		Command:         []string{Command},
		Args:            d.arguments(),
		Env:             d.environment(),
		Ports:           []corev1.ContainerPort{{Name: "vision-health", ContainerPort: HealthPort, Protocol: corev1.ProtocolTCP}},
		Resources:       d.resources(),
		VolumeMounts:    d.mounts(),
		RestartPolicy:   &always,
		SecurityContext: d.securityContext(),
		// The agent's containers start once the listeners are there. There is no
		// readiness probe: the pod's readiness is the agent's.
		StartupProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: "/startupz", Port: intstr.FromInt32(HealthPort), Scheme: corev1.URISchemeHTTP,
			}},
			PeriodSeconds:    1,
			TimeoutSeconds:   2,
			SuccessThreshold: 1,
			FailureThreshold: 60,
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

func (d *decision) arguments() []string {
	args := []string{
		"serve", "--router", routerDirectory, "--profile", literal(d.profile.ID),
		"--secrets", secretsDirectory, "--cache", cacheDirectory,
		"--max-persisted-bytes", strconv.FormatInt(roomForObservations(d.shape.CacheMaxBytes), 10),
	}
	for _, dir := range d.work.directories {
		args = append(args, "--workspace", literal(dir))
	}
	level := d.shape.LogLevel
	if level == "" {
		level = v1alpha1.LogLevelInfo
	}
	return append(args,
		"--listen", fmt.Sprintf("127.0.0.1:%d", Port),
		"--health-listen", fmt.Sprintf(":%d", HealthPort),
		"--log-level", literal(string(level)))
}

// environment is the runtime's own: what the workspaces' subPathExpr need, then
// the administrator's proxies and CA.
func (d *decision) environment() []corev1.EnvVar {
	env := slices.Clone(d.work.env)
	for _, v := range []corev1.EnvVar{
		{Name: "HTTP_PROXY", Value: literal(d.Settings.HTTPProxy)},
		{Name: "HTTPS_PROXY", Value: literal(d.Settings.HTTPSProxy)},
		{Name: "NO_PROXY", Value: literal(d.Settings.NoProxy)},
	} {
		if v.Value != "" {
			env = append(env, v)
		}
	}
	if d.Settings.CAConfigMap != "" {
		// Go reads this directory besides the image's own bundle of public CAs.
		env = append(env, corev1.EnvVar{Name: "SSL_CERT_DIR", Value: caDirectory})
	}
	return env
}

// mounts are the runtime's volumes, then the agent's workspaces and what these need.
func (d *decision) mounts() []corev1.VolumeMount {
	mounts := []corev1.VolumeMount{
		{Name: routerVolume, MountPath: routerDirectory, ReadOnly: true},
		{Name: secretsVolume, MountPath: secretsDirectory, ReadOnly: true},
		{Name: cacheVolume, MountPath: cacheDirectory},
		{Name: tokenVolume, MountPath: tokenDirectory, ReadOnly: true},
	}
	if d.Settings.CAConfigMap != "" {
		mounts = append(mounts, corev1.VolumeMount{Name: caVolume, MountPath: caDirectory, ReadOnly: true})
	}
	mounts = append(mounts, mountpoints(d.work.mounts)...)
	return append(mounts, d.work.mounts...)
}

// volumes are what mounts refers to and the pod does not have.
func (d *decision) volumes() []corev1.Volume {
	yes, everyone := true, int32(0o444)
	limit := cacheSize(d.shape.CacheMaxBytes)
	configMap := func(volume, name string) corev1.Volume {
		return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, DefaultMode: &everyone, Optional: &yes,
		}}}
	}
	volumes := []corev1.Volume{
		configMap(routerVolume, router.ConfigMapName),
		{Name: secretsVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: d.projections(), DefaultMode: &everyone,
		}}},
		{Name: cacheVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}},
		{Name: tokenVolume, VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{DefaultMode: &everyone}}},
	}
	if d.Settings.CAConfigMap != "" {
		volumes = append(volumes, configMap(caVolume, d.Settings.CAConfigMap))
	}
	return volumes
}

// cacheSize is the size limit of the cache volume, whose content is uploads,
// references, shown images and, where the policy has the cache persist, observations. A pod
// whose volume outgrows its limit is evicted, so there is a quarter more than
// that; and room for the default of observations in any case, so that persist
// may be turned on while the pod runs.
func cacheSize(observations int64) resource.Quantity {
	content := router.MaxUploadBytes + router.MaxReferenceBytes + router.MaxPinnedBytes + roomForObservations(observations)
	return *resource.NewQuantity(content+content/4, resource.BinarySI)
}

// roomForObservations is what the volume holds of them. The runtime is told, for
// a policy may come to allow more than the volume that the pod was made with.
func roomForObservations(maxBytes int64) int64 {
	return min(max(maxBytes, compile.DefaultCacheMaxBytes), math.MaxInt64/2)
}

// hash names what a plan puts into the pod, whatever others make of it there.
func hash(p *Plan) string {
	data, err := json.Marshal(struct {
		Container *corev1.Container
		Volumes   []corev1.Volume
	}{&p.Container, p.Volumes})
	if err != nil {
		// These types hold nothing that JSON cannot.
		panic("inject: encoding the desired container: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
