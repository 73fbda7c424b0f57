// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import "fmt"

// RestartAPIServer ends the API server and starts it again: at the same address,
// with the same certificates and users, on what etcd holds. Its clients lose
// their connections and their watches.
func (c *Cluster) RestartAPIServer() error {
	server := c.environment.ControlPlane.GetAPIServer()
	if err := server.Stop(); err != nil {
		return fmt.Errorf("restarting the API server: ending it: %w", err)
	}
	if err := server.Start(); err != nil {
		return fmt.Errorf("restarting the API server: starting it: %w", err)
	}
	return nil
}

// StopEtcd ends etcd, while the API server goes on without it: it answers
// nothing that etcd must, until [Cluster.StartEtcd].
func (c *Cluster) StopEtcd() error {
	if err := c.environment.ControlPlane.Etcd.Stop(); err != nil {
		return fmt.Errorf("stopping etcd: %w", err)
	}
	return nil
}

// StartEtcd starts etcd after [Cluster.StopEtcd], at the same address with all
// that it held.
func (c *Cluster) StartEtcd() error {
	if err := c.environment.ControlPlane.Etcd.Start(); err != nil {
		return fmt.Errorf("starting etcd again: %w", err)
	}
	return nil
}
