// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// storm edits, deletes and makes objects at random, until the end of the test or
// stop. What the API server refuses while it is away is not tried again.
type storm struct {
	cancel context.CancelFunc
	done   chan struct{}
	edits  atomic.Int64 // that the API server took
}

// outage bounds one edit of a storm: the API server may be away.
const outage = 2 * time.Second

func startStorm(t *testing.T, w world) *storm {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &storm{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for ctx.Err() == nil {
			s.edit(ctx, w)
			time.Sleep(time.Duration(10+w.IntN(20)) * time.Millisecond)
		}
	}()
	t.Cleanup(s.stop)
	return s
}

func (s *storm) edit(ctx context.Context, w world) {
	ctx, cancel := context.WithTimeout(ctx, outage)
	defer cancel()
	var err error
	slots := stormy()
	if at := slots[w.IntN(len(slots))]; w.often(2) {
		err = w.remove(ctx, at)
	} else {
		err = w.put(ctx, at)
	}
	if err == nil {
		s.edits.Add(1)
	}
}

func (s *storm) stop() {
	s.cancel()
	<-s.done
}

// stormy are the slots of a storm: all but Secrets, which the operator looks at
// once a minute only.
func stormy() []slot {
	var slots []slot
	for _, s := range universe() {
		if s.kind != secret {
			slots = append(slots, s)
		}
	}
	return slots
}

// prepareFaults makes what a storm goes over: in every team an anchor, whose
// profile no version of the router may lack.
func prepareFaults(t *testing.T, w world) *recorder {
	t.Helper()
	vacate(t)
	for _, s := range universe() {
		if s.kind == secret {
			if err := w.put(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	anchor(t, teams...)
	always := map[string][]string{}
	for _, team := range teams {
		always[team] = []string{"policy/anchor"}
	}
	return record(t, always)
}

// finish stops the storm, waits for the end state, and judges every version that
// a router had.
func finish(t *testing.T, s *storm, seen *recorder, log func() string) {
	t.Helper()
	s.stop()
	if n := s.edits.Load(); n < 50 {
		t.Errorf("only %d edits were made", n)
	}
	eventually(t, "waiting for all to be as the objects say", func() error { return settled(t.Context(), seen.ever) })
	seen.judge(t)
	if least := 5 * len(teams); seen.count() < least {
		t.Errorf("only %d versions of routers were seen, want %d at least", seen.count(), least)
	}
	t.Logf("%d edits, %d versions of routers", s.edits.Load(), seen.count())
	if t.Failed() {
		t.Logf("the operator's log ends with\n%s", log())
	}
	seen.forget() // what is left goes with its policies
	leave(t)
}

// After both faults the operator goes on; should it have ended meanwhile, since it
// could not keep its Lease, it is started again, as a kubelet does.
func TestTheAPIServerIsRestartedAndEtcdStopsForTenSeconds(t *testing.T) {
	w := newWorld(4)
	seen := prepareFaults(t, w)
	operator := keepRunning(t, "--leader-elect")
	s := startStorm(t, w)
	seen.more(t, "before the faults")
	began := time.Now()
	if err := cluster.RestartAPIServer(); err != nil {
		t.Fatal(err)
	}
	t.Logf("the API server was restarted in %s", time.Since(began))
	seen.more(t, "after a restart of the API server")
	if err := cluster.StopEtcd(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Second)
	if err := cluster.StartEtcd(); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	seen.more(t, "after etcd was away")
	t.Logf("fifteen more versions came %s after etcd was back", time.Since(began))
	t.Logf("the operator was started %d times", operator.count())
	finish(t, s, seen, func() string { return operator.process().log.String() })
}

// kills is how often the operator is killed.
const kills = 20

func TestTheOperatorIsKilledAtRandomMoments(t *testing.T) {
	w := newWorld(5)
	seen := prepareFaults(t, w)
	s := startStorm(t, newWorld(6))
	atWork := 0
	for i := range kills {
		p, before := startProcess(t), len(writes(t))
		if i%4 != 0 { // else at any moment of its start
			eventually(t, "waiting for the operator to write", func() error {
				if len(writes(t)) == before {
					return errors.New(p.log.String())
				}
				return nil
			})
		}
		time.Sleep(time.Duration(w.IntN(400)) * time.Millisecond)
		p.kill()
		if len(writes(t)) > before {
			atWork++
		}
	}
	t.Logf("%d of %d were killed after they had begun to write", atWork, kills)
	last := startProcess(t)
	finish(t, s, seen, last.log.String)
}

// A leader that is killed keeps the Lease until it runs out; then the other
// replica, whose cache has followed all the while, takes it and goes on.
func TestTheLeaderOfTwoReplicasIsKilled(t *testing.T) {
	w := newWorld(8)
	seen := prepareFaults(t, w)
	first := startProcess(t, "--leader-elect")
	holder := waitLeader(t, "")
	second := startProcess(t, "--leader-elect")
	s := startStorm(t, w)
	seen.more(t, "of the first leader")
	first.kill()
	if next := waitLeader(t, holder); next == holder {
		t.Errorf("%s still leads", next)
	}
	seen.more(t, "of the second leader")
	finish(t, s, seen, second.log.String)
	select {
	case <-second.ended:
		t.Errorf("the second replica has ended:\n%s", second.log)
	default:
	}
}

var leaseKey = client.ObjectKey{Namespace: operatorNamespace, Name: v1alpha1.ManagedBy}

// readLease reads the Lease of the leader, which exists.
func readLease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	lease := &coordinationv1.Lease{}
	if err := admin.Get(t.Context(), leaseKey, lease); err != nil {
		t.Fatal(err)
	}
	return lease
}

// waitLeader waits for a leader other than one, and returns it.
func waitLeader(t *testing.T, other string) string {
	t.Helper()
	var holder string
	eventually(t, "waiting for a leader other than "+other, func() error {
		lease := &coordinationv1.Lease{}
		if err := admin.Get(t.Context(), leaseKey, lease); err != nil {
			return err
		}
		if lease.Spec.HolderIdentity != nil {
			holder = *lease.Spec.HolderIdentity
		}
		if holder == "" || holder == other {
			return fmt.Errorf("the leader is %q", holder)
		}
		return nil
	})
	return holder
}
