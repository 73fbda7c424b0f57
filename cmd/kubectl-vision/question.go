// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/webhook"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// question is which pods are explained, and by what.
type question struct {
	subjects []subject
	reader   client.Reader
	scope    gather.Scope
	// settings are the runtime's; settingsKnown says that somebody told them.
	settings      inject.Settings
	settingsKnown bool
	// withoutSecrets leaves keys unlooked at, as the operator may be told to.
	withoutSecrets bool
	// uninstalled says that the cluster does not ask the operator about pods.
	uninstalled bool
	// unread is what was missed before any pod was looked at.
	unread []unread
}

// askFiles reads files.
func askFiles(o *explainOptions, stdin io.Reader, stderr io.Writer) (*question, error) {
	schemas, err := loadSchemas()
	if err != nil {
		return nil, err
	}
	if o.namespace == "" {
		o.namespace = corev1.NamespaceDefault
	}
	objects := newObjects(o.namespace, schemas)
	objects.explained = &explainable{secrets: map[client.ObjectKey]*corev1.Secret{}}
	if err := objects.readPaths(o.files, stdin); err != nil {
		return nil, err
	}
	for _, line := range refusals(objects) {
		fmt.Fprintln(stderr, line)
	}
	if len(objects.explained.subjects) == 0 {
		return nil, fmt.Errorf("reading objects: the files hold no Pod, and no template of one")
	}
	return &question{
		subjects: objects.explained.subjects, reader: filed{objects},
		scope:    gather.Scope{OperatorNamespace: o.operatorNamespace},
		settings: o.operator.settings, settingsKnown: o.operatorGiven,
	}, nil
}

// askCluster reads the live objects that are asked about, and the operator's flags.
func askCluster(ctx context.Context, o *explainOptions) (*question, error) {
	c, err := connect(o)
	if err != nil {
		return nil, err
	}
	q := &question{
		reader: c, scope: gather.Scope{OperatorNamespace: o.operatorNamespace},
		settings: o.operator.settings, settingsKnown: o.operatorGiven,
	}
	for _, ref := range o.references {
		s, err := ref.read(ctx, c, o.namespace)
		if err != nil {
			return nil, err
		}
		q.subjects = append(q.subjects, s)
	}
	if err := q.readOperator(ctx); err != nil {
		return nil, err
	}
	return q, q.readWebhooks(ctx)
}

// connect makes a client with the rights of who asks, and settles the namespace.
func connect(o *explainOptions) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	if o.namespace == "" {
		if o.namespace, _, err = loader.Namespace(); err != nil {
			return nil, fmt.Errorf("finding the namespace: %w", err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reaching the API server: %w", err)
	}
	return c, nil
}

// read gets a live pod, or a workload for the pod that its template makes.
func (r reference) read(ctx context.Context, c client.Reader, namespace string) (subject, error) {
	key := client.ObjectKey{Namespace: namespace, Name: r.name}
	if r.of == nil {
		pod := &corev1.Pod{}
		if err := c.Get(ctx, key, pod); err != nil {
			return subject{}, fmt.Errorf("reading pod %s: %w", key, err)
		}
		pod.APIVersion, pod.Kind = "v1", "Pod"
		return subject{kind: "Pod", name: pod.Name, pod: pod}, nil
	}
	object := r.of.empty()
	if err := c.Get(ctx, key, object); err != nil {
		return subject{}, fmt.Errorf("reading %s %s: %w", r.of.kind, key, err)
	}
	return podOf(r.of.kind, object, r.of.template(object)), nil
}

// readOperator takes over what the operator's own flags say, as far as no flag of
// this command does.
func (q *question) readOperator(ctx context.Context) error {
	flags, err := operatorOf(ctx, q.reader, q.scope.OperatorNamespace)
	if err != nil {
		missed, err := unreadOperator(err, q.scope.OperatorNamespace)
		if err == nil {
			q.unread = append(q.unread, missed)
		}
		return err
	}
	q.scope.Namespaces = flags.watchNamespaces
	q.withoutSecrets = flags.secretAccess == withoutSecrets
	if !q.settingsKnown {
		q.settings, q.settingsKnown = flags.settings, true
	}
	return nil
}

// webhooksName is that of the webhook configuration in config/webhook.
const webhooksName = "vision-operator"

// readWebhooks looks whether the API server would ask the operator at all.
func (q *question) readWebhooks(ctx context.Context) error {
	var hooks admissionregistrationv1.MutatingWebhookConfiguration
	err := q.reader.Get(ctx, client.ObjectKey{Name: webhooksName}, &hooks)
	switch {
	case apierrors.IsNotFound(err):
		q.uninstalled = true
	case apierrors.IsForbidden(err):
		q.unread = append(q.unread, unread{Resource: "mutatingwebhookconfigurations", Name: webhooksName, Why: reasonOf(err),
			Means: "whether the API server asks the operator about pods is not known"})
	case err != nil:
		return fmt.Errorf("reading the webhook configuration %s: %w", webhooksName, err)
	}
	return nil
}

// decide asks admission's own code about one pod, with all that can be read.
func (q *question) decide(ctx context.Context, s *subject) (inject.Plan, *tolerant, error) {
	from := &tolerant{from: q.reader, pods: s.namespace()}
	settings := q.settings
	if has, ok := runtimeOf(s.pod); ok && !q.settingsKnown && has.Image != "" {
		settings.Image = has.Image
	}
	decider := webhook.Decider{Cached: from, Live: from, Scope: q.scope, Settings: settings}
	if !q.withoutSecrets {
		decider.Keys = webhook.NewKeys(from)
	}
	plan, err := decider.Decide(ctx, s.pod, s.namespace())
	return plan, from, err
}
