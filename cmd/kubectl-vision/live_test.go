// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/visionoperator/vision-operator/test/envtest"
)

// cluster is the API server of the tests that need one.
var cluster *envtest.Cluster

var startCluster = sync.OnceValue(func() (err error) {
	cluster, err = envtest.Start(envtest.Options{})
	return err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if cluster != nil {
		if err := cluster.Stop(); err != nil {
			fmt.Fprintf(os.Stderr, "FAIL: %v\n", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// world is a cluster with a team's namespace in it.
type world struct{ *testing.T }

// kubectl runs kubectl as the administrator.
func (w world) kubectl(stdin string, args ...string) {
	w.Helper()
	if _, err := cluster.Kubectl(w.Context(), stdin, args...); err != nil {
		w.Fatal(err)
	}
}

// explain runs the command with the rights of a kubeconfig.
func (w world) explain(kubeconfig string, args ...string) (stdout string, code int) {
	w.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"explain", "--kubeconfig", kubeconfig}, args...)
	if err := run(w.Context(), args, nil, &out, &errs); err != nil {
		code = exitCode(err)
		w.Logf("%v: %v", args[3:], err)
	}
	return out.String(), code
}

// account is what -o json says of one object.
func (w world) account(kubeconfig, object, namespace string) (account, int) {
	w.Helper()
	out, code := w.explain(kubeconfig, object, "-n", namespace, "-o", "json")
	var all struct{ Pods []account }
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all.Pods) != 1 {
		w.Fatalf("%s: got %q (%v), want one account", object, out, err)
	}
	return all.Pods[0], code
}

// kubeconfigOf writes the kubeconfig of a user without any rights of its own.
func (w world) kubeconfigOf(name string) string {
	w.Helper()
	config, err := cluster.User(name)
	if err != nil {
		w.Fatal(err)
	}
	return w.write(config)
}

func (w world) write(config *rest.Config) string {
	w.Helper()
	file := clientcmdapi.NewConfig()
	file.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	file.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test", Namespace: "team"}
	file.CurrentContext = "test"
	path := filepath.Join(w.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		w.Fatal(err)
	}
	return path
}

// liveObjects are a team's, with an operator that nobody runs.
const liveObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: team, labels: {visionoperator.dev/inject: enabled}}
---
apiVersion: v1
kind: Namespace
metadata: {name: vision-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: vision-operator, namespace: vision-system, labels: {app.kubernetes.io/name: vision-operator}}
spec:
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec:
      containers:
        - name: operator
          image: vision-operator:dev
          args: [--operator-namespace=$(POD_NAMESPACE), --leader-elect, --runtime-image=registry.example/vision-runtime:v1, --runtime-requests=cpu=10m]
---
apiVersion: v1
kind: Secret
metadata: {name: local-key, namespace: team}
stringData: {api-key: not-a-real-key}
---
apiVersion: visionoperator.dev/v1alpha1
kind: VisionProvider
metadata: {name: local, namespace: team}
spec:
  transport: OpenAIChatCompletions
  endpoints: [{name: main, url: "https://models.example.com/v1"}]
  credentials: {secretRef: {name: local-key, key: api-key}}
  models: [{name: vision-large, imageInput: true}]
---
apiVersion: visionoperator.dev/v1alpha1
kind: VisionPolicy
metadata: {name: agents, namespace: team}
spec:
  podSelector: {matchLabels: {app: agent}}
  defaultModel: local/vision-large
---
apiVersion: v1
kind: Pod
metadata: {name: bare, namespace: team, labels: {app: agent}}
spec: {containers: [{name: agent, image: registry.example/agent:v1}]}
---
apiVersion: v1
kind: Pod
metadata: {name: on-the-node, namespace: team, labels: {app: agent}}
spec: {hostNetwork: true, containers: [{name: agent, image: registry.example/agent:v1}]}
---
apiVersion: v1
kind: Pod
metadata: {name: opted-out, namespace: team, labels: {app: agent, visionoperator.dev/inject: disabled}}
spec: {containers: [{name: agent, image: registry.example/agent:v1}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: agent, namespace: team}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: agent, image: registry.example/agent:v1, volumeMounts: [{name: work, mountPath: /work}]}]
      volumes: [{name: work, emptyDir: {}}]
---
# A tenant who sees pods and Vision Operator's kinds of one namespace.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: tenant, namespace: team}
rules:
  - {apiGroups: [""], resources: [pods], verbs: [get]}
  - {apiGroups: [visionoperator.dev], resources: [visionpolicies, visionproviders], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenant}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
---
# A visitor who sees pods alone.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: visitor, namespace: team}
rules:
  - {apiGroups: [""], resources: [pods], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: visitor, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: visitor}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: visitor}]
`

// The steps build on each other: the webhooks' configuration comes second, since
// pods could not be created quickly with it and without an operator.
func TestALiveObjectIsExplained(t *testing.T) {
	if err := startCluster(); err != nil {
		t.Fatal(err)
	}
	w := world{t}
	w.kubectl(liveObjects, "apply", "-f", "-")
	admin := cluster.Kubeconfig()

	a, code := w.account(admin, "pod/bare", "team")
	if a.Checks[0].Outcome != "Failed" || a.Checks[0].Notes[0].Reason != reasonNotInstalled || a.Admission != admissionWithout || code != exitFailed {
		t.Errorf("without webhooks: got %+v, %s and exit code %d", a.Checks[0], a.Admission, code)
	}
	made := w.explainInjected(admin)
	w.kubectl(made, "create", "-f", "-")
	w.kubectl("", "apply", "-f", filepath.Join("..", "..", "config", "webhook", "mutating.yaml"))

	for _, test := range []struct {
		object    string
		admission admission
		state     state
		code      int
	}{
		{"pod/bare", admissionInjected, stateMissing, exitFailed},
		{"bare", admissionInjected, stateMissing, exitFailed},
		{"po/on-the-node", admissionWithout, stateWithout, exitFailed},
		{"pod/opted-out", admissionUnasked, stateWithout, 0},
		{"pod/made", admissionInjected, stateCurrent, 0},
		{"deploy/agent", admissionInjected, "", 0},
	} {
		a, code := w.account(admin, test.object, "team")
		var has state
		if a.Now != nil {
			has = a.Now.State
		}
		if a.Admission != test.admission || has != test.state || code != test.code || len(a.Unread) > 0 {
			t.Errorf("%s: got %s, %q, exit code %d and unread %v; want %s, %q, %d and none", test.object, a.Admission, has, code, a.Unread, test.admission, test.state, test.code)
		}
	}
	if out, code := w.explain(admin, "pod/nobody", "-n", "team"); code != exitFailed || out != "" {
		t.Errorf("a pod that is not there: got %q and exit code %d", out, code)
	}
	t.Run("by who may not read everything", func(t *testing.T) { world{t}.byTenants() })
	w.kubectl("", "patch", "visionpolicy", "agents", "-n", "team", "--type=merge", "-p", `{"spec":{"runtime":{"logLevel":"debug"}}}`)
	a, code = w.account(admin, "pod/made", "team")
	if a.Now.State != stateOutdated || !slices.Equal(a.Now.Differs, []string{"container"}) || code != 0 {
		t.Errorf("after a change of the policy: got %+v and exit code %d, want Outdated and 0", a.Now, code)
	}
}

// explainInjected is the pod that the Deployment would make, called "made".
func (w world) explainInjected(kubeconfig string) string {
	w.Helper()
	w.kubectl("", "apply", "-f", filepath.Join("..", "..", "config", "webhook", "mutating.yaml"))
	out, code := w.explain(kubeconfig, "deployment/agent", "-n", "team", "-o", "yaml")
	if code != 0 {
		w.Errorf("explaining the Deployment: got exit code %d, want 0", code)
	}
	w.kubectl("", "delete", "mutatingwebhookconfiguration", webhooksName)
	for _, want := range []string{"image: registry.example/vision-runtime:v1", "cpu: 10m", "generateName: agent-"} {
		if !strings.Contains(out, want) {
			w.Errorf("the injected pod lacks %q:\n%s", want, out)
		}
	}
	return strings.Replace(out, "generateName: agent-", "name: made", 1)
}

// byTenants: what rights do not reach is told, and decides nothing in silence.
func (w world) byTenants() {
	tenant, visitor := w.kubeconfigOf("tenant"), w.kubeconfigOf("visitor")
	a, code := w.account(tenant, "pod/made", "team")
	var missed []string
	for _, u := range a.Unread {
		missed = append(missed, strings.TrimSpace(u.Resource+" "+u.Namespace))
		if u.Why == "" || u.Means == "" {
			w.Errorf("%s: why is %q and means is %q", u.Resource, u.Why, u.Means)
		}
	}
	slices.Sort(missed)
	// The namespace opts the pod in, and the tenant does not see it.
	want := []string{"deployments vision-system", "limitranges team", "mutatingwebhookconfigurations", "namespaces", "visionpolicies vision-system"}
	if !slices.Equal(missed, want) || a.Admission != admissionUnknown || a.Now.State != stateUnknown || code != 0 {
		w.Errorf("the tenant: got %s, %+v, exit code %d and unread %v; want Unknown, 0 and %v", a.Admission, a.Now, code, missed, want)
	}

	w.kubectl("", "label", "pod", "bare", "-n", "team", "visionoperator.dev/inject=enabled")
	a, code = w.account(tenant, "pod/bare", "team")
	secret := slices.ContainsFunc(a.Unread, func(u unread) bool { return u.Resource == "secrets" && u.Name == "local-key" })
	if a.Admission != admissionInjected || !secret || code != exitFailed {
		w.Errorf("the tenant, of a pod with the label: got %s, exit code %d and unread %+v", a.Admission, code, a.Unread)
	}
	a, code = w.account(visitor, "pod/bare", "team")
	if a.Admission != admissionUnknown || code != exitFailed {
		w.Errorf("the visitor: got %s and exit code %d, want Unknown and %d", a.Admission, code, exitFailed)
	}
	if out, code := w.explain(visitor, "deployment/agent"); code != exitFailed || out != "" {
		w.Errorf("a Deployment that the visitor may not read: got %q and exit code %d", out, code)
	}
	if out, _ := w.explain(visitor, "bare"); !strings.Contains(out, "visionpolicies of namespace team") {
		w.Errorf("the text does not say what is missing:\n%s", out)
	}
}
