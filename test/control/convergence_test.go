// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/visionoperator/vision-operator/controllers"
	"github.com/visionoperator/vision-operator/runtime/router"
)

const seeds = 20

// quick are intervals for what cannot be watched, so that a seed takes seconds.
var quick = controllers.Intervals{CredentialRetry: 200 * time.Millisecond, CredentialRefresh: 200 * time.Millisecond,
	Leftover: 200 * time.Millisecond, Pods: 300 * time.Millisecond, Refused: time.Second}

func TestRoutersAndStatusesComeToWhatTheObjectsSayInWhateverOrderTheyCame(t *testing.T) {
	versions := 0
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { versions += converge(t, newWorld(seed)) })
	}
	// Were the controllers to see only the end, this would be a weak test.
	if least := seeds * 3 * len(teams); versions < least {
		t.Errorf("only %d versions of routers were seen, want %d at least", versions, least)
	}
}

// converge tells one story and returns how many versions of routers there were.
func converge(t *testing.T, w world) int {
	seen := record(t, nil)
	for i, team := range teams {
		create(t, injectedPod(team, []string{"policy/agents", "policy/readers", "baseline/baseline-0"}[i%3]))
	}
	story := w.story()
	begin, again, pause := w.IntN(len(story)/2), len(story)/2+w.IntN(len(story)/2), w.IntN(len(story))
	var stop func()
	for i, step := range story {
		switch i {
		case begin:
			stop = startControllers(t)
		case again:
			stop()
			stop = startControllers(t)
		}
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i == pause && i > begin {
			eventually(t, "waiting halfway", func() error { return settled(t.Context(), seen.ever) })
		}
		time.Sleep(time.Duration(w.IntN(30)) * time.Millisecond) // let the controllers meet something in between
	}
	eventually(t, "waiting for all to be as the objects say", func() error { return settled(t.Context(), seen.ever) })
	seen.judge(t)
	leave(t)
	stop()
	return seen.count()
}

type step func(context.Context) error

// story makes all 40 objects in random order, and meanwhile edits and deletes
// some, makes some again, and has others meddle with routers.
func (w world) story() []step {
	slots := universe()
	w.Shuffle(len(slots), func(i, j int) { slots[i], slots[j] = slots[j], slots[i] })
	var story []step
	for i, s := range slots {
		story = append(story, func(ctx context.Context) error { return w.put(ctx, s) })
		earlier := slots[w.IntN(i+1)]
		switch team := teams[w.IntN(len(teams))]; w.IntN(8) {
		case 0, 1:
			story = append(story, func(ctx context.Context) error { return w.put(ctx, earlier) })
		case 2:
			story = append(story, func(ctx context.Context) error { return w.remove(ctx, earlier) })
		case 3:
			story = append(story, func(ctx context.Context) error { return w.remove(ctx, earlier) },
				func(ctx context.Context) error { return w.put(ctx, earlier) })
		case 4:
			story = append(story, w.meddle(team))
		}
	}
	return story
}

// meddle edits or deletes a namespace's router, if there is one.
func (w world) meddle(team string) step {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: router.ConfigMapName}}
	how := w.IntN(3)
	return func(ctx context.Context) error {
		if how == 0 {
			return client.IgnoreNotFound(admin.Delete(ctx, c))
		}
		return client.IgnoreNotFound(edit(ctx, c, func() {
			if how == 1 {
				c.Labels = nil
			} else {
				c.Data = map[string]string{router.Key: `{"version":"router/v1","namespace":"` + team + `","profiles":[],"providers":[]}`}
			}
		}))
	}
}

// startControllers runs the controllers in this process, as the operator's
// service account, until stop or the end of the test.
func startControllers(t *testing.T) (stop func()) {
	t.Helper()
	reached := rest.CopyConfig(operator)
	reached.QPS = -1
	mgr, err := ctrl.NewManager(reached, ctrl.Options{
		Scheme:     scheme,
		Cache:      controllers.CacheOptions(),
		Client:     controllers.ClientOptions(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := controllers.Setup(mgr, controllers.Options{OperatorNamespace: operatorNamespace, Intervals: quick}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := mgr.Start(ctx); err != nil {
			t.Errorf("the controllers ended with %v", err)
		}
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the cache does not fill")
	}
	return stop
}
