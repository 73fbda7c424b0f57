// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/visionoperator/vision-operator/controllers"
	"github.com/visionoperator/vision-operator/webhook"
	"github.com/visionoperator/vision-operator/webhook/certs"
	"github.com/visionoperator/vision-operator/webhook/watchdog"
)

// off, as a listen address, means that nothing listens.
const off = "0"

// Values of --components.
const (
	componentControllers = "controllers"
	componentWebhooks    = "webhooks"
)

// Values of --secret-access.
const (
	secretAccessCluster    = "cluster"
	secretAccessNamespaces = "namespaces"
	secretAccessNone       = "none"
)

// namespaceFile holds the namespace of a pod, put there by Kubernetes.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// imageTag is what a registry accepts as a tag.
var imageTag = regexp.MustCompile(`^[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}$`)

// defaultRuntimeImage is the runtime of the operator's own version, or of "dev"
// where the version of a build cannot be a tag.
func defaultRuntimeImage() string {
	tag := buildVersion()
	if !imageTag.MatchString(tag) {
		tag = "dev"
	}
	return "ghcr.io/visionoperator/vision-runtime:" + tag
}

// configuration is the command line.
type configuration struct {
	kubeconfig        string
	operatorNamespace string
	components        []string
	watchNamespaces   []string
	secretAccess      string
	metricsListen     string
	metricsInsecure   bool
	metricsCertDir    string
	healthListen      string
	webhookListen     string
	webhookCertDir    string
	webhookHosts      []string
	webhookCALife     time.Duration
	webhookCertLife   time.Duration
	stampsPerSecond   int
	watchdogInterval  time.Duration
	watchdogEvict     bool
	leaderElect       bool
	logLevel          string
	logFormat         string
	version           bool
	checkInstall      bool

	runtimeImage       string
	runtimePullPolicy  string
	runtimePullSecrets []string
	runtimeHTTPProxy   string
	runtimeHTTPSProxy  string
	runtimeNoProxy     string
	runtimeCAConfigMap string
	runtimeRequests    map[string]string
	runtimeLimits      map[string]string
}

// usageError is a command line that cannot work.
type usageError struct{ problem string }

// Error names the problem and where to read on.
func (e *usageError) Error() string {
	return e.problem + " (vision-operator --help lists the flags)"
}

// parse reads the command line. With --help it prints the flags to stdout and
// returns pflag.ErrHelp.
func parse(args []string, stdout io.Writer) (configuration, error) {
	cfg := configuration{}
	flags := cfg.flags()
	flags.SetOutput(stdout)
	flags.Usage = func() {
		fmt.Fprintf(stdout, "vision-operator gives the pods of a cluster a vision runtime, under a platform team's policies.\n\nUsage:\n  vision-operator [flags]\n\nFlags:\n%s", flags.FlagUsagesWrapped(100))
	}
	if err := flags.Parse(args); err != nil {
		if err == pflag.ErrHelp { //nolint:errorlint // pflag returns it bare
			return cfg, err
		}
		return cfg, &usageError{problem: err.Error()}
	}
	if flags.NArg() > 0 {
		return cfg, &usageError{problem: fmt.Sprintf("vision-operator takes flags only; got %q", flags.Arg(0))}
	}
	if cfg.version {
		return cfg, nil
	}
	if cfg.operatorNamespace == "" {
		if data, err := os.ReadFile(namespaceFile); err == nil {
			cfg.operatorNamespace = strings.TrimSpace(string(data))
		}
	}
	return cfg, cfg.check()
}

func (c *configuration) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("vision-operator", pflag.ContinueOnError)
	f.SortFlags = false
	f.StringVar(&c.operatorNamespace, "operator-namespace", "", "namespace of the operator, where its CA is kept, leaders are elected and baselines may live; default: the pod's own")
	f.StringSliceVar(&c.components, "components", []string{componentControllers, componentWebhooks}, "what this process runs, separated by commas: controllers (they compile, publish and report; one replica, elected, works), webhooks (admission; every replica works). Installed apart, neither waits for the other, and each has the rights that it needs")
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "file that says how to reach the API server; default: $KUBECONFIG, else the pod's service account")
	f.BoolVar(&c.leaderElect, "leader-elect", false, "let one of several replicas reconcile, elected by the Lease vision-operator; all serve admission")
	f.StringSliceVar(&c.watchNamespaces, "watch-namespaces", nil, "namespaces to serve besides the operator's own, separated by commas; default: all. What is of the cluster stays so: labels of namespaces are read, and the CRDs, webhook configurations and admission policies are one for all, limited by their own selectors")
	f.StringVar(&c.secretAccess, "secret-access", secretAccessCluster, "which Secrets its roles let the operator read by name: cluster, namespaces (some: others are reported as not readable) or none (it does not ask)")
	f.StringVar(&c.metricsListen, "metrics-listen", ":8443", "address of /metrics (Prometheus over HTTPS, for who may get the path /metrics); 0 for none")
	f.BoolVar(&c.metricsInsecure, "metrics-insecure", false, "serve /metrics over plain HTTP, to everybody")
	f.StringVar(&c.metricsCertDir, "metrics-cert-dir", "", "directory with tls.crt and tls.key of your own for the metrics; default: a certificate that the operator signs itself")
	f.StringVar(&c.healthListen, "health-listen", ":8081", "address of /healthz and /readyz; 0 for none")
	f.StringVar(&c.webhookListen, "webhook-listen", webhook.DefaultListen, "address of the admission webhooks; 0 for none")
	f.StringVar(&c.webhookCertDir, "webhook-cert-dir", "", "directory with tls.crt and tls.key of your own for the webhooks; default: a CA that the operator keeps in its namespace")
	f.StringArrayVar(&c.webhookHosts, "webhook-host", nil, "further DNS name or IP address in the webhooks' certificate (repeatable); those of the webhook configurations are known")
	f.DurationVar(&c.webhookCALife, "webhook-ca-lifetime", certs.DefaultCALifetime, "how long a CA of the webhooks holds; it is renewed after two thirds, and one that was made to hold longer is renewed sooner")
	f.DurationVar(&c.webhookCertLife, "webhook-cert-lifetime", certs.DefaultLeafLifetime, "how long a replica's certificate for the webhooks holds; it is renewed after two thirds")

	f.IntVar(&c.stampsPerSecond, "stamps-per-second", controllers.DefaultStampsPerSecond, fmt.Sprintf("how many injected pods are told of a new router or key in a second, over all namespaces, 1 to %d: each is a write of a pod", controllers.MaxStampsPerSecond))
	f.DurationVar(&c.watchdogInterval, "watchdog-interval", watchdog.DefaultInterval, "time between two looks for pods that asked for the runtime and run without it, by the replica that leads; 0 for none")
	f.BoolVar(&c.watchdogEvict, "watchdog-evict", false, "evict such pods, for their owners to make them again with the runtime: as PodDisruptionBudgets allow, at most 10 in a minute; needs the rights of config/rbac/eviction_role.yaml")

	f.StringVar(&c.runtimeImage, "runtime-image", defaultRuntimeImage(), "image of the injected runtime, best with its digest")
	f.StringVar(&c.runtimePullPolicy, "runtime-image-pull-policy", "", "Always, IfNotPresent or Never; default: the API server's")
	f.StringArrayVar(&c.runtimePullSecrets, "runtime-image-pull-secret", nil, "Secret of the pod's namespace to pull the image with (repeatable)")
	f.StringVar(&c.runtimeHTTPProxy, "runtime-http-proxy", "", "HTTP_PROXY of the injected runtime")
	f.StringVar(&c.runtimeHTTPSProxy, "runtime-https-proxy", "", "HTTPS_PROXY of the injected runtime")
	f.StringVar(&c.runtimeNoProxy, "runtime-no-proxy", "", "NO_PROXY of the injected runtime")
	f.StringVar(&c.runtimeCAConfigMap, "runtime-ca-configmap", "", "ConfigMap of the pod's namespace with PEM files that the runtime trusts besides the public CAs")
	f.StringToStringVar(&c.runtimeRequests, "runtime-requests", nil, "resources that the injected runtime requests where its policy sets none, such as cpu=10m,memory=32Mi")
	f.StringToStringVar(&c.runtimeLimits, "runtime-limits", nil, "limits of the injected runtime where its policy sets none, such as memory=256Mi; given one of the two, nothing is filled in for the other")

	f.StringVar(&c.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&c.logFormat, "log-format", "json", "json or text")
	f.BoolVar(&c.checkInstall, "check-install", false, "run nothing: see within a minute, by a dry run, that the API server has the kinds and reaches the webhook, and end. Needs the right to create visionproviders in --operator-namespace")
	f.BoolVar(&c.version, "version", false, "print the version and end")
	return f
}

func (c *configuration) check() error {
	if c.operatorNamespace == "" {
		return &usageError{problem: "--operator-namespace must be given outside a pod"}
	}
	if problems := validation.IsDNS1123Label(c.operatorNamespace); len(problems) > 0 {
		return &usageError{problem: fmt.Sprintf("--operator-namespace %q is no namespace: %s", c.operatorNamespace, problems[0])}
	}
	for _, l := range []struct{ flag, address string }{
		{"--metrics-listen", c.metricsListen}, {"--health-listen", c.healthListen}, {"--webhook-listen", c.webhookListen},
	} {
		if l.address == off {
			continue
		}
		if _, _, err := net.SplitHostPort(l.address); err != nil {
			return &usageError{problem: fmt.Sprintf("%s %q is no address: want host:port, :port, or 0 for none", l.flag, l.address)}
		}
	}
	if err := c.checkComponents(); err != nil {
		return err
	}
	if err := c.checkScope(); err != nil {
		return err
	}
	if err := c.checkStamps(); err != nil {
		return err
	}
	if err := c.checkWatchdog(); err != nil {
		return err
	}
	if err := c.checkLifetimes(); err != nil {
		return err
	}
	switch corev1.PullPolicy(c.runtimePullPolicy) {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		return &usageError{problem: fmt.Sprintf("--runtime-image-pull-policy %q is none of Always, IfNotPresent, Never", c.runtimePullPolicy)}
	}
	if _, err := c.runtimeResources(); err != nil {
		return err
	}
	if _, err := newLogger(*c, io.Discard); err != nil {
		return err
	}
	return nil
}

// runs reports whether a component is among those that this process runs.
func (c *configuration) runs(component string) bool { return slices.Contains(c.components, component) }

func (c *configuration) checkComponents() error {
	for _, component := range c.components {
		if component != componentControllers && component != componentWebhooks {
			return &usageError{problem: fmt.Sprintf("--components: %q is none of controllers, webhooks", component)}
		}
	}
	if len(c.components) == 0 {
		return &usageError{problem: "--components names nothing to run: want controllers, webhooks or both"}
	}
	if c.runs(componentWebhooks) && !c.runs(componentControllers) && c.webhookListen == off {
		return &usageError{problem: "--components=webhooks with --webhook-listen=0 runs nothing"}
	}
	return nil
}

// checkStamps refuses a rate at which nothing would be told, or that the client does not send.
func (c *configuration) checkStamps() error {
	if n := c.stampsPerSecond; n < 1 || n > controllers.MaxStampsPerSecond {
		return &usageError{problem: fmt.Sprintf("--stamps-per-second %d is not within 1 and %d", n, controllers.MaxStampsPerSecond)}
	}
	return nil
}

// checkWatchdog refuses looks that would be a load of their own, and evictions
// without looks.
func (c *configuration) checkWatchdog() error {
	if c.watchdogInterval != 0 && c.watchdogInterval < time.Second {
		return &usageError{problem: fmt.Sprintf("--watchdog-interval %s is less than a second: give 0 for none", c.watchdogInterval)}
	}
	if c.watchdogEvict && c.watchdogInterval == 0 {
		return &usageError{problem: "--watchdog-evict evicts what the watchdog finds, and --watchdog-interval 0 turns it off"}
	}
	return nil
}

// checkLifetimes refuses certificates that could not be renewed in time.
func (c *configuration) checkLifetimes() error {
	if c.webhookCALife <= 0 || c.webhookCertLife <= 0 {
		return &usageError{problem: "--webhook-ca-lifetime and --webhook-cert-lifetime must be above 0"}
	}
	if err := (certs.Options{CALifetime: c.webhookCALife, LeafLifetime: c.webhookCertLife}).Check(); err != nil {
		return &usageError{problem: "--webhook-ca-lifetime and --webhook-cert-lifetime do not go together: " + err.Error()}
	}
	return nil
}

// checkScope checks what the operator sees, and who sees it.
func (c *configuration) checkScope() error {
	for _, namespace := range c.watchNamespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return &usageError{problem: fmt.Sprintf("--watch-namespaces: %q is no namespace: %s", namespace, problems[0])}
		}
	}
	switch c.secretAccess {
	case secretAccessCluster, secretAccessNamespaces, secretAccessNone:
	default:
		return &usageError{problem: fmt.Sprintf("--secret-access %q is none of cluster, namespaces, none", c.secretAccess)}
	}
	if c.metricsInsecure && c.metricsCertDir != "" {
		return &usageError{problem: "--metrics-insecure serves no certificate: leave --metrics-cert-dir out"}
	}
	return nil
}

// runtimeResources are what --runtime-requests and --runtime-limits say; nil
// leaves it to injection.
func (c *configuration) runtimeResources() (*corev1.ResourceRequirements, error) {
	if len(c.runtimeRequests) == 0 && len(c.runtimeLimits) == 0 {
		return nil, nil
	}
	requests, err := resourceList("--runtime-requests", c.runtimeRequests)
	if err != nil {
		return nil, err
	}
	limits, err := resourceList("--runtime-limits", c.runtimeLimits)
	if err != nil {
		return nil, err
	}
	for name, request := range requests {
		if limit, ok := limits[name]; ok && request.Cmp(limit) > 0 {
			return nil, &usageError{problem: fmt.Sprintf("--runtime-requests asks for %s of %s; --runtime-limits allows %s", request.String(), name, limit.String())}
		}
	}
	return &corev1.ResourceRequirements{Requests: requests, Limits: limits}, nil
}

func resourceList(flag string, values map[string]string) (corev1.ResourceList, error) {
	list := make(corev1.ResourceList, len(values))
	for name, value := range values {
		quantity, err := resource.ParseQuantity(value)
		if err != nil || quantity.Sign() <= 0 {
			return nil, &usageError{problem: fmt.Sprintf("%s: %q is no quantity of %s above 0", flag, value, name)}
		}
		switch corev1.ResourceName(name) {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			list[corev1.ResourceName(name)] = quantity
		default:
			return nil, &usageError{problem: fmt.Sprintf("%s: %q is none of cpu, memory, ephemeral-storage", flag, name)}
		}
	}
	return list, nil
}

// newLogger makes the operator's log, one line for each record.
func newLogger(c configuration, w io.Writer) (logr.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.logLevel)); err != nil {
		return logr.Logger{}, &usageError{problem: fmt.Sprintf("--log-level %q is none of debug, info, warn, error", c.logLevel)}
	}
	options := &slog.HandlerOptions{Level: level}
	switch c.logFormat {
	case "json":
		return logr.FromSlogHandler(slog.NewJSONHandler(w, options)), nil
	case "text":
		return logr.FromSlogHandler(slog.NewTextHandler(w, options)), nil
	}
	return logr.Logger{}, &usageError{problem: fmt.Sprintf("--log-format %q is neither json nor text", c.logFormat)}
}
