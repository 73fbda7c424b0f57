// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Write is one request of the audited user that writes, as the API server
// answered it.
type Write struct {
	Verb string // create, update, patch, delete, deletecollection
	// Resource is its plural, with the subresource: "visionpolicies/status".
	Resource        string
	Namespace, Name string
	Code            int // the HTTP status of the answer
}

// String is "patch visionpolicies/status team/agents: 200".
func (w Write) String() string {
	return fmt.Sprintf("%s %s %s/%s: %d", w.Verb, w.Resource, w.Namespace, w.Name, w.Code)
}

// auditPolicy notes the answers to one user's writes, and nothing else.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    users: [%q]
    verbs: [create, update, patch, delete, deletecollection]
  - level: None
`

// audit has the API server note the writes of a user.
func (c *Cluster) audit(user string) error {
	policy := filepath.Join(c.folder, "audit.yaml")
	if err := os.WriteFile(policy, fmt.Appendf(nil, auditPolicy, user), 0o600); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	c.environment.ControlPlane.GetAPIServer().Configure().
		Set("audit-policy-file", policy).
		Set("audit-log-path", c.auditLog()).
		Set("audit-log-mode", "blocking") // noted before the answer is complete
	return nil
}

func (c *Cluster) auditLog() string { return filepath.Join(c.folder, "audit.log") }

// Writes are all writes of [Options.AuditWritesOf] since the start, in the order
// of their answers.
func (c *Cluster) Writes() ([]Write, error) {
	writes, _, err := c.WritesSince(0)
	return writes, err
}

// WritesSince are the writes that came after an earlier call returned next, the
// place from which a later one shall go on; 0 is the start.
func (c *Cluster) WritesSince(from int64) (writes []Write, next int64, err error) {
	file, err := os.Open(c.auditLog())
	if err != nil {
		return nil, from, fmt.Errorf("reading the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return nil, from, fmt.Errorf("reading the audit log: %w", err)
	}
	next = from
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // the end, or a line that is being written
			return writes, next, nil
		}
		w, err := parseWrite(line)
		if err != nil {
			return nil, from, fmt.Errorf("reading the audit log: %w", err)
		}
		writes, next = append(writes, w), next+int64(len(line))
	}
}

// parseWrite reads one line of the audit log.
func parseWrite(line []byte) (Write, error) {
	var event struct {
		Verb      string `json:"verb"`
		ObjectRef struct {
			Resource    string `json:"resource"`
			Subresource string `json:"subresource"`
			Namespace   string `json:"namespace"`
			Name        string `json:"name"`
		} `json:"objectRef"`
		ResponseStatus struct {
			Code int `json:"code"`
		} `json:"responseStatus"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return Write{}, err
	}
	o := event.ObjectRef
	return Write{Verb: event.Verb, Resource: strings.TrimSuffix(o.Resource+"/"+o.Subresource, "/"),
		Namespace: o.Namespace, Name: o.Name, Code: event.ResponseStatus.Code}, nil
}
