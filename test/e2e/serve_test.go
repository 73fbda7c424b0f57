// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// given is the screenshot in the agent's workspace, put there by its init container.
const given = "/workspace/in/screenshot.png"

var (
	paragraph = regexp.MustCompile(`(?s)<p>(.*?)</p>`)
	word      = regexp.MustCompile(`[a-z0-9]{2,}`)
)

// wordsOfTheScreenshot are those of the paragraph that the screenshot shows.
func wordsOfTheScreenshot(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "test/images/release-dashboard.html"))
	if err != nil {
		t.Fatal(err)
	}
	m := paragraph.FindSubmatch(page)
	if m == nil {
		t.Fatal("the page of the screenshot has no paragraph")
	}
	return word.FindAllString(strings.ToLower(html.UnescapeString(string(m[1]))), -1)
}

// saysTheScreenshot fails unless nearly all of the screenshot's words are in an answer.
func saysTheScreenshot(t *testing.T, answer string) {
	t.Helper()
	want, have := wordsOfTheScreenshot(t), word.FindAllString(strings.ToLower(answer), -1)
	found := 0
	for _, w := range want {
		if slices.Contains(have, w) {
			found++
		}
	}
	t.Logf("%d of %d words of the screenshot's paragraph were read", found, len(want))
	if found < len(want)*95/100 {
		t.Errorf("the answer is %s", answer)
	}
}

// aTeamMovesIn applies a team's namespace, its provider, policy and agent together.
func (w *world) aTeamMovesIn(t *testing.T) {
	w.kubectl(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+team+`","labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`, "apply", "--server-side", "-f", "-")
	w.giveScreenshot(t, team)
	w.apply(t, "team.yaml")
	w.rolledOut(t, team, "keyed")
	pod := w.agent(t, team)
	i := slices.IndexFunc(pod.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == "vision-runtime" })
	if i < 0 || pod.Status.InitContainerStatuses[i].State.Running == nil {
		t.Fatalf("the pod runs without the native sidecar: %+v", pod.Status.InitContainerStatuses)
	}
	eventually(t, 30*time.Second, func() error {
		policy := &v1alpha1.VisionPolicy{}
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: team, Name: "default"}, policy); err != nil {
			return err
		}
		for _, c := range policy.Status.Conditions {
			if c.Type == "Ready" && c.Status == metav1.ConditionTrue && policy.Status.Pods != nil && policy.Status.Pods.Matched > 0 {
				return nil
			}
		}
		return fmt.Errorf("policy default is not Ready, or counts no pod: %+v", policy.Status)
	})
}

// giveScreenshot puts the screenshot into a ConfigMap, as an agent's input.
func (w *world) giveScreenshot(t *testing.T, namespace string) {
	t.Helper()
	picture, err := os.ReadFile(filepath.Join(root, "test/images/release-dashboard.png"))
	if err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "screenshot", Namespace: namespace}, BinaryData: map[string][]byte{"screenshot.png": picture}}
	if err := w.Create(t.Context(), cm); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
}

func (w *world) theAgentViewsAnImage(t *testing.T) {
	status, answer, err := w.call(t.Context(), w.agent(t, team), "/view", map[string]string{"path": given, "prompt": "Read all text."})
	if err != nil || status != http.StatusOK {
		t.Fatalf("HTTP %d %s %v", status, answer, err)
	}
	saysTheScreenshot(t, answer)
}

func (w *world) theAgentAsksItsModelThroughTheProxy(t *testing.T) {
	status, answer, err := w.call(t.Context(), w.agent(t, team), "/chat", map[string]string{"path": given})
	if err != nil || status != http.StatusOK {
		t.Fatalf("HTTP %d %s %v", status, answer, err)
	}
	var completion struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal([]byte(answer), &completion); err != nil || len(completion.Choices) != 1 {
		t.Fatalf("the completion is %s", answer)
	}
	saysTheScreenshot(t, completion.Choices[0].Message.Content)
}

func (w *world) aJobCompletesWithTheRuntimeBesideIt(t *testing.T) {
	w.apply(t, "job.yaml")
	eventually(t, 2*time.Minute, func() error {
		job := &batchv1.Job{}
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: team, Name: "once"}, job); err != nil {
			return err
		}
		if job.Status.Succeeded != 1 {
			return fmt.Errorf("the Job has not succeeded: %+v", job.Status)
		}
		return nil
	})
	pods := w.pods(t, team, "app", "once")
	if len(pods) != 1 || pods[0].Labels[v1alpha1.InjectedLabel] != "true" {
		t.Fatalf("the Job's pod was not injected: %v", pods)
	}
	saysTheScreenshot(t, w.kubectl(t, "", "-n", team, "logs", "job/once", "-c", "look"))
}
