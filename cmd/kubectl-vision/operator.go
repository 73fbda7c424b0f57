// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/webhook/inject"
)

// operatorFlags are those of the operator's command line that its decisions on
// pods depend on. explain has the runtime's ones too, for who explains files.
type operatorFlags struct {
	settings         inject.Settings
	requests, limits map[string]string

	// watchNamespaces and secretAccess are read of the operator alone.
	watchNamespaces []string
	secretAccess    string
}

// withoutSecrets is the operator's --secret-access with which it looks at no Secret.
const withoutSecrets = "none"

// runtimeFlagPrefix begins the names of the runtime's flags.
const runtimeFlagPrefix = "runtime-"

// unknownImage stands for the runtime's image where nothing tells it.
const unknownImage = "vision-runtime:unknown"

// addTo adds the runtime's flags, which the operator has under the same names.
func (o *operatorFlags) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.settings.Image, "runtime-image", unknownImage, "`IMAGE` of the runtime, as the operator's flag")
	f.StringVar((*string)(&o.settings.PullPolicy), "runtime-image-pull-policy", "", "`POLICY`: Always, IfNotPresent or Never")
	f.StringArrayVar(&o.settings.PullSecrets, "runtime-image-pull-secret", nil, "`SECRET` to pull the image with (repeatable)")
	f.StringVar(&o.settings.HTTPProxy, "runtime-http-proxy", "", "HTTP_PROXY of the runtime, a `URL`")
	f.StringVar(&o.settings.HTTPSProxy, "runtime-https-proxy", "", "HTTPS_PROXY of the runtime, a `URL`")
	f.StringVar(&o.settings.NoProxy, "runtime-no-proxy", "", "NO_PROXY of the runtime, a `LIST`")
	f.StringVar(&o.settings.CAConfigMap, "runtime-ca-configmap", "", "`CONFIGMAP` with CAs that the runtime trusts")
	f.StringToStringVar(&o.requests, "runtime-requests", nil, "resources that the runtime requests, such as `cpu=10m,memory=32Mi`")
	f.StringToStringVar(&o.limits, "runtime-limits", nil, "limits of the runtime, such as `memory=256Mi`")
}

// complete turns what the flags say of resources into settings.
func (o *operatorFlags) complete() error {
	if len(o.requests)+len(o.limits) == 0 {
		return nil
	}
	o.settings.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for flag, from := range map[string]map[string]string{"requests": o.requests, "limits": o.limits} {
		into := o.settings.Resources.Requests
		if flag == "limits" {
			into = o.settings.Resources.Limits
		}
		for name, value := range from {
			quantity, err := resource.ParseQuantity(value)
			if err != nil {
				return &usageError{problem: fmt.Sprintf("--%s%s: %q is no quantity of %s", runtimeFlagPrefix, flag, value, name)}
			}
			into[corev1.ResourceName(name)] = quantity
		}
	}
	return nil
}

// parseOperator reads the command line of the operator's container. The
// references to environment variables in it concern other flags.
func parseOperator(args []string) (*operatorFlags, error) {
	o := &operatorFlags{}
	f := pflag.NewFlagSet("vision-operator", pflag.ContinueOnError)
	f.ParseErrorsAllowlist.UnknownFlags = true
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	o.addTo(f)
	f.StringSliceVar(&o.watchNamespaces, "watch-namespaces", nil, "")
	f.StringVar(&o.secretAccess, "secret-access", "", "")
	if err := f.Parse(args); err != nil {
		return nil, fmt.Errorf("reading the operator's command line: %w", err)
	}
	return o, o.complete()
}

// errNoOperator is a namespace without the operator's Deployment.
var errNoOperator = errors.New("there is no Deployment with the label app.kubernetes.io/name: vision-operator and the flag --runtime-image")

// operatorOf reads the flags of the operator that runs in a namespace.
func operatorOf(ctx context.Context, r client.Reader, namespace string) (*operatorFlags, error) {
	var list appsv1.DeploymentList
	if err := r.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": "vision-operator"}); err != nil {
		return nil, fmt.Errorf("listing Deployments of namespace %s: %w", namespace, err)
	}
	for i := range list.Items {
		for _, c := range list.Items[i].Spec.Template.Spec.Containers {
			ours := func(arg string) bool { return strings.HasPrefix(arg, "--runtime-image") }
			if args := slices.Concat(c.Command, c.Args); slices.ContainsFunc(args, ours) {
				return parseOperator(args)
			}
		}
	}
	return nil, errNoOperator
}

// unreadOperator is what follows when the operator's flags are not known, or the
// error where that is no answer.
func unreadOperator(err error, namespace string) (unread, error) {
	if errors.Is(err, errNoOperator) || apierrors.IsForbidden(err) {
		return unread{Resource: "deployments", Namespace: namespace, Why: reasonOf(err),
			Means: "the operator's own settings of the runtime, such as its image, are not known; flags of this command can give them"}, nil
	}
	return unread{}, err
}
