// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/controllers/gather"
)

// access asks whether whoever writes a policy may read the keys that pods will
// send because of it. A provider that another namespace shares with credentials
// from: Consumer says which Secret of the pods' namespace goes to its endpoints:
// to name it in a policy is to send that Secret there, which who may not read it
// must not do. Who may write the provider is judged by config/admissionpolicy.
//
// It is as good as the webhook is present: the failurePolicy decides about what
// could not be asked.
type access struct {
	live    client.Reader // not cached
	reviews authorizationclient.SubjectAccessReviewInterface
	scope   gather.Scope
}

// sent is a Secret that pods send to the endpoints of a provider.
type sent struct {
	// field names the provider; namespace is the pods', empty for all.
	field, provider, namespace, secret string
}

// policy refuses a policy, whose predecessor is nil when it is new, with a
// Forbidden that names every Secret which its author may not get. An error says
// what could not be asked.
func (a *access) policy(ctx context.Context, old, p *v1alpha1.VisionPolicy) (*apierrors.StatusError, error) {
	keys, err := a.sentBy(ctx, old, p)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	req, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("judging who writes a policy: %w", err)
	}
	var refused []string
	for _, k := range keys {
		allowed, err := a.mayGet(ctx, req.UserInfo, k.namespace, k.secret)
		if err != nil {
			return nil, err
		}
		if !allowed {
			refused = append(refused, k.refusal(req.UserInfo.Username))
		}
	}
	if refused == nil {
		return nil, nil
	}
	resource := v1alpha1.GroupVersion.WithResource("visionpolicies").GroupResource()
	return apierrors.NewForbidden(resource, p.Name, errors.New(strings.Join(refused, "; "))), nil
}

// sentBy are the Secrets that pods begin to send because of a policy. What its
// predecessor named already does not count: nothing of a key moves.
func (a *access) sentBy(ctx context.Context, old, p *v1alpha1.VisionPolicy) ([]sent, error) {
	baseline, where := p.Spec.NamespaceSelector != nil, p.Namespace
	if baseline {
		where = ""
	}
	if !a.scope.Holds(p.Namespace) || baseline && p.Namespace != a.scope.OperatorNamespace {
		return nil, nil // it is not in force
	}
	var keys []sent
	for i, ref := range p.Spec.Providers {
		at := gather.ProviderOf(p, ref)
		if at.Namespace == p.Namespace && !baseline || !a.scope.Holds(at.Namespace) || named(old, p, at) {
			continue
		}
		var provider v1alpha1.VisionProvider
		switch err := a.live.Get(ctx, at, &provider); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("reading VisionProvider %s: %w", at, err)
		}
		secret := provider.Spec.Credentials.SecretRef
		if secret == nil || secret.From == nil || *secret.From != v1alpha1.SecretFromConsumer {
			continue
		}
		switch permits, err := a.permits(ctx, &provider, p); {
		case err != nil:
			return nil, err
		case !permits:
			continue // as if it were not there: a refusal would tell that it is
		}
		keys = append(keys, sent{field: fmt.Sprintf("spec.providers[%d]", i), provider: at.String(), namespace: where, secret: secret.Name})
	}
	return keys, nil
}

// permits reports whether a provider may be used because of a policy: only then a key
// is sent, and only then anything may be told of the provider. For whom a baseline
// matches, namespaces that come later decide as well: all but one's own count.
func (a *access) permits(ctx context.Context, provider *v1alpha1.VisionProvider, by *v1alpha1.VisionPolicy) (bool, error) {
	if by.Spec.NamespaceSelector != nil {
		return provider.Namespace == by.Namespace || compile.Shared(provider), nil
	}
	labels, err := namespaceLabels(ctx, a.live, by.Namespace)
	if err != nil {
		return false, err
	}
	return compile.Permits(provider, labels), nil
}

// named reports whether a policy's predecessor named a provider, for the same pods' namespaces.
func named(old, p *v1alpha1.VisionPolicy, provider client.ObjectKey) bool {
	return old != nil && equality.Semantic.DeepEqual(old.Spec.NamespaceSelector, p.Spec.NamespaceSelector) &&
		slices.ContainsFunc(old.Spec.Providers, func(r v1alpha1.ProviderReference) bool { return gather.ProviderOf(old, r) == provider })
}

func (k sent) refusal(user string) string {
	where := fmt.Sprintf("in namespace %q", k.namespace)
	if k.namespace == "" {
		where = "in every namespace, as a baseline needs"
	}
	return fmt.Sprintf("%s: %s may not get Secret %q %s, which VisionProvider %s would have pods send to its endpoints: "+
		"whoever says where a key goes must be allowed to read it. Ask for that, or let somebody who may apply this", k.field, user, k.secret, where, k.provider)
}

// mayGet asks the API server whether a user may get a Secret; no namespace stands for all.
func (a *access) mayGet(ctx context.Context, user authenticationv1.UserInfo, namespace, secret string) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "secrets", Namespace: namespace, Name: secret},
	}}
	answer, err := a.reviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking whether %s may get Secret %s/%s: %w", user.Username, namespace, secret, err)
	}
	return answer.Status.Allowed, nil
}
