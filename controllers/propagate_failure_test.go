// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAFailureThatMayPassIsToldFromARefusal(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	answered := func(code int32) error { return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code}} }
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"a connection that breaks":                 {errors.New("connection refused"), true},
		"a deadline":                               {fmt.Errorf("patching: %w", context.DeadlineExceeded), true},
		"too many requests":                        {apierrors.NewTooManyRequests("later", 1), true},
		"a server that times out":                  {apierrors.NewServerTimeout(pods, "patch", 1), true},
		"a request that times out":                 {apierrors.NewTimeoutError("too slow", 1), true},
		"a server that is away":                    {apierrors.NewServiceUnavailable("away"), true},
		"an error of the server's":                 {apierrors.NewInternalError(errors.New("etcd")), true},
		"a code of the server's without a reason":  {answered(502), true},
		"a refusal":                                {apierrors.NewForbidden(pods, "p", errors.New("no")), false},
		"a refusal that another webhook explains":  {apierrors.NewBadRequest("no"), false},
		"a refusal of a webhook without a reason":  {answered(400), false},
		"a pod that was never valid":               {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil), false},
		"a refusal that came through other errors": {fmt.Errorf("patching: %w", answered(403)), false},
	} {
		if got := mayPass(tc.err); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
