// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission tests, on a real API server, what config/admissionpolicy
// refuses and what it lets pass. No operator runs: the policies are CEL.
package admission

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/test/envtest"
)

const operatorNamespace = "vision-system"

// foreignNamespace has a ConfigMap of our name from before the policies were installed.
const foreignNamespace = "early"

var (
	cluster *envtest.Cluster
	admin   client.Client // of system:masters
	scheme  = runtime.NewScheme()
)

func TestMain(m *testing.M) {
	os.Exit(envtest.Run(m, envtest.Options{}, func(c *envtest.Cluster) {
		cluster = c
		if err := prepare(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "preparing the suite:", err)
			os.Exit(1)
		}
	}))
}

func prepare(ctx context.Context) (err error) {
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	if admin, err = client.New(cluster.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: foreignNamespace}},
		configMap(foreignNamespace, router.ConfigMapName, false),
	} {
		if err := admin.Create(ctx, o); err != nil {
			return err
		}
	}
	for _, folder := range []string{"rbac", "admissionpolicy"} {
		if err := cluster.Install(ctx, operatorNamespace, "../../config/"+folder); err != nil {
			return err
		}
	}
	return inForce(ctx)
}

// inForce waits until the API server has heard of both policies.
func inForce(ctx context.Context) error {
	guest, err := user("guest", metav1.NamespaceDefault, verbs("", "configmaps", "create"), verbs("visionoperator.dev", "visionproviders", "create"))
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		router := guest.Create(ctx, configMap(metav1.NamespaceDefault, router.ConfigMapName, false), client.DryRunAll)
		provider := guest.Create(ctx, keyed(metav1.NamespaceDefault, "probe", "some"), client.DryRunAll)
		if apierrors.IsForbidden(router) && apierrors.IsForbidden(provider) {
			return nil
		}
	}
	return fmt.Errorf("the policies are not in force")
}

// user returns the client of somebody whom a Role with rules in a namespace is
// all that RBAC grants.
func user(name, namespace string, rules ...rbacv1.PolicyRule) (client.Client, error) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}},
	} {
		if err := admin.Create(context.Background(), o); client.IgnoreAlreadyExists(err) != nil {
			return nil, err
		}
	}
	return named(name)
}

// named returns the client of a user by name and groups.
func named(name string, groups ...string) (client.Client, error) {
	config, err := cluster.User(name, groups...)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// serviceAccount returns the client of a service account.
func serviceAccount(t *testing.T, namespace, name string) client.Client {
	t.Helper()
	c, err := named("system:serviceaccount:"+namespace+":"+name, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tenant makes a namespace and somebody in it, who may do there what rules say.
func tenant(t *testing.T, rules ...rbacv1.PolicyRule) (client.Client, string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}
	create(t, ns)
	c, err := user("tenant-of-"+ns.Name, ns.Name, rules...)
	if err != nil {
		t.Fatal(err)
	}
	return c, ns.Name
}

// verbs is a rule for one resource.
func verbs(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// create makes an object as the administrator.
func create(t *testing.T, o client.Object) {
	t.Helper()
	if err := admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// configMap is a ConfigMap with or without our label.
func configMap(namespace, name string, ours bool) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"key": "value"}}
	if ours {
		c.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
	}
	return c
}

// keyed is a provider with a key in a Secret; an empty name means none.
func keyed(namespace, name, secret string) *v1alpha1.VisionProvider {
	p := &v1alpha1.VisionProvider{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.VisionProviderSpec{
			Transport:   v1alpha1.TransportOpenAIChatCompletions,
			Endpoints:   []v1alpha1.Endpoint{{Name: "main", URL: "https://models.example.com/v1"}},
			Credentials: v1alpha1.Credentials{None: &v1alpha1.NoCredentials{}},
			Models:      []v1alpha1.Model{{Name: "vision", ImageInput: new(true)}},
		},
	}
	if secret != "" {
		p.Spec.Credentials = v1alpha1.Credentials{SecretRef: &v1alpha1.SecretKeyReference{Name: secret, Key: "api-key"}}
	}
	return p
}
