// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestEndToEnd runs the steps in their order; the first that fails ends it. With
// E2E_FULL the slow ones run too: waiting for the kubelet's own pace takes minutes.
// With E2E_FROM it begins with the first step whose name holds that, in a cluster
// where the steps before it were run already.
func TestEndToEnd(t *testing.T) {
	w := newWorld(t)
	full, from := os.Getenv("E2E_FULL") != "", os.Getenv("E2E_FROM")
	for _, step := range []struct {
		name string
		slow bool
		run  func(*testing.T)
	}{
		{"our namespace enforces Pod Security restricted", false, w.ourNamespaceIsRestricted},
		{"the chart as it was before installs", false, w.theOldChartIsInstalled},
		{"a team's provider, policy and agent are applied together", false, w.aTeamMovesIn},
		{"the agent views an image", false, w.theAgentViewsAnImage},
		{"the chart is upgraded under the running agent", false, w.theChartIsUpgraded},
		{"the chart's own test passes", false, w.theChartsOwnTestPasses},
		{"the agent views the image after the upgrade", false, w.theAgentViewsAnImage},
		{"the agent asks its model through the proxy", false, w.theAgentAsksItsModelThroughTheProxy},
		{"a Job completes with the runtime beside it", false, w.aJobCompletesWithTheRuntimeBesideIt},
		{"a policy edit reaches the running pod", false, w.aPolicyEditReachesTheRunningPod},
		{"the kubelet's own pace, without the stamp", true, w.withoutTheStamp},
		{"a rotated Secret reaches the running pod", false, w.aRotatedSecretReachesTheRunningPod},
		{"operator and webhook are killed", false, w.theOperatorIsKilled},
		{"the node's kubelet restarts", false, w.theKubeletRestarts},
		{"the runtime runs out of memory", false, w.theRuntimeRunsOutOfMemory},
		{"the webhook is down during a rollout", false, w.theWebhookIsDownDuringARollout},
		{"500 pods of 50 namespaces are injected", false, w.fiveHundredPods},
		{"what our ServiceAccounts may do", false, w.rightsOf},
		{"the chart is uninstalled and installed again", false, w.theChartIsUninstalled},
		{"the agent views the image after that", false, w.theAgentViewsAnImage},
	} {
		if from != "" && !strings.Contains(step.name, from) {
			continue
		}
		from = ""
		if step.slow && !full {
			t.Logf("NOT RUN without E2E_FULL=1: %s", step.name)
			continue
		}
		if !t.Run(step.name, step.run) {
			break
		}
	}
	for _, figure := range w.figures {
		t.Log(figure)
	}
}
