// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// shared is the suite's provider under a name, which others may use, each with
// their own Secret.
func shared(name, secret string) *v1alpha1.VisionProvider {
	p := provider()
	p.Name = name
	p.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: new(v1alpha1.NamespacesFromAll)}
	p.Spec.Credentials.SecretRef.Name = secret
	p.Spec.Credentials.SecretRef.From = new(v1alpha1.SecretFromConsumer)
	return p
}

// somebody may write policies in a namespace and, by name, get some Secrets there.
func somebody(t *testing.T, namespace string, secrets ...string) client.Client {
	t.Helper()
	name := strings.Join(append([]string{"author", namespace}, secrets...), "-")
	rules := []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"visionpolicies"}, Verbs: []string{"*"}}}
	if len(secrets) > 0 {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: secrets})
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "group-of-" + name}}},
	} {
		if err := admin.Create(t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	config, err := cluster.User(name, "group-of-"+name)
	if err != nil {
		t.Fatal(err)
	}
	made, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	// The authorizer follows what is written a moment later.
	asked := &authorizationv1.SelfSubjectAccessReview{}
	asked.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "update", Group: v1alpha1.GroupVersion.Group, Resource: "visionpolicies"}
	if err := eventually(func() error {
		if err := made.Create(t.Context(), asked); err != nil {
			return err
		}
		if !asked.Status.Allowed {
			return errors.New("the author may not write policies yet")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return made
}

// naming is a policy of a namespace that names providers of another.
func naming(namespace, of string, providers ...string) *v1alpha1.VisionPolicy {
	p := policy(v1alpha1.AdmissionWarn)
	p.Namespace = namespace
	for _, name := range providers {
		p.Spec.Providers = append(p.Spec.Providers, v1alpha1.ProviderReference{Name: name, Namespace: of})
	}
	return p
}

func TestWhoNamesAnothersProviderMustBeAllowedToReadTheKeyThatPodsThenSend(t *testing.T) {
	platform, team := newUser(t), newUser(t)
	open := keyless("open")
	open.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: new(v1alpha1.NamespacesFromAll)}
	platform.create(shared("theirs", "database"), shared("more", "billing"), open)
	hidden, forOthers := shared("hidden", "database"), shared("for-others", "database")
	hidden.Spec.AllowedNamespaces = nil
	forOthers.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: new(v1alpha1.NamespacesFromSelector), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
	forTeam := shared("for-team", "database")
	forTeam.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: new(v1alpha1.NamespacesFromSelector), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": team.namespace}}}
	platform.create(hidden, forOthers, forTeam)
	own := shared("own", "database")
	team.create(own)
	for name, c := range map[string]struct {
		may     []string
		policy  *v1alpha1.VisionPolicy
		refused []string
	}{
		"a key that its author may not read":                                     {nil, naming(team.namespace, platform.namespace, "theirs"), []string{`spec.providers[0]`, `may not get Secret "database" in namespace "` + team.namespace + `"`, platform.namespace + "/theirs"}},
		"a key that its author may read":                                         {[]string{"database"}, naming(team.namespace, platform.namespace, "theirs"), nil},
		"two keys of which one may be read":                                      {[]string{"database"}, naming(team.namespace, platform.namespace, "theirs", "more"), []string{`spec.providers[1]`, `Secret "billing"`}},
		"two keys of which none may be read":                                     {nil, naming(team.namespace, platform.namespace, "theirs", "more"), []string{`spec.providers[0]`, `Secret "database"`, `spec.providers[1]`, `Secret "billing"`}},
		"a provider without a key":                                               {nil, naming(team.namespace, platform.namespace, "open"), nil},
		"a provider that is not there":                                           {nil, naming(team.namespace, platform.namespace, "gone"), nil},
		"one that does not permit it, which is as good as one that is not there": {nil, naming(team.namespace, platform.namespace, "hidden"), nil},
		"one that permits others":                                                {nil, naming(team.namespace, platform.namespace, "for-others"), nil},
		"one that permits it by its labels":                                      {nil, naming(team.namespace, platform.namespace, "for-team"), []string{`spec.providers[0]`, `Secret "database"`}},
		"its own provider, which is judged apart":                                {nil, naming(team.namespace, "", "own"), nil},
		"a policy that is no baseline anywhere": {nil, func() *v1alpha1.VisionPolicy {
			p := naming(team.namespace, platform.namespace, "theirs")
			p.Spec.NamespaceSelector = &metav1.LabelSelector{}
			return p
		}(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := somebody(t, team.namespace, c.may...).Create(t.Context(), c.policy, client.DryRunAll)
			judgeRefusal(t, err, c.refused)
			if err := team.Create(t.Context(), c.policy, client.DryRunAll); err != nil {
				t.Errorf("as the administrator: %v", err)
			}
		})
	}
}

func judgeRefusal(t *testing.T, err error, words []string) {
	t.Helper()
	if words == nil {
		if err != nil {
			t.Errorf("got %v, want it to be let pass", err)
		}
		return
	}
	if !apierrors.IsForbidden(err) {
		t.Fatalf("got %v, want a refusal", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("got %v, want it to say %q", err, w)
		}
	}
}

func TestAPolicyThatSendsAKeyAlreadyMayBeEditedByWhoMayNotReadIt(t *testing.T) {
	platform, team := newUser(t), newUser(t)
	platform.create(shared("theirs", "database"), shared("more", "billing"))
	p := naming("", platform.namespace, "theirs")
	team.create(p)
	author := somebody(t, team.namespace)

	p.Spec.DefaultModel = new("theirs/" + provider().Spec.Models[0].Name)
	judgeRefusal(t, author.Update(t.Context(), p), nil)
	p.Labels = map[string]string{"a": "b"}
	judgeRefusal(t, author.Update(t.Context(), p), nil)
	p.Spec.Providers = append(p.Spec.Providers, v1alpha1.ProviderReference{Name: "more", Namespace: platform.namespace})
	judgeRefusal(t, author.Update(t.Context(), p), []string{"spec.providers[1]", `Secret "billing"`})
	p.Spec.Providers = nil
	judgeRefusal(t, author.Update(t.Context(), p), nil)
	p.Spec.Providers = []v1alpha1.ProviderReference{{Name: "theirs", Namespace: platform.namespace}}
	judgeRefusal(t, author.Update(t.Context(), p), []string{"spec.providers[0]", `Secret "database"`})
}

func TestWhoWritesABaselineMustBeAllowedToReadTheKeyEverywhere(t *testing.T) {
	suite.Need(t)
	theirs := shared("theirs", "database")
	theirs.Namespace = operatorNamespace
	if err := admin.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(t.Context(), theirs) })
	baseline := naming(operatorNamespace, "", "theirs")
	baseline.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "nobody"}}

	here := somebody(t, operatorNamespace, "database")
	judgeRefusal(t, here.Create(t.Context(), baseline.DeepCopy(), client.DryRunAll), []string{"spec.providers[0]", `Secret "database" in every namespace`})

	meta := metav1.ObjectMeta{Name: "reads-the-key-everywhere"}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: []string{"database"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "group-of-author-" + operatorNamespace + "-database"}}}
	for _, o := range []client.Object{role, binding} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := eventually(func() error { return here.Create(t.Context(), baseline.DeepCopy(), client.DryRunAll) }); err != nil {
		t.Errorf("got %v although the key may be read everywhere", err)
	}
}
