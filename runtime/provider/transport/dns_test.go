// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"encoding/binary"
	"net"
	"time"
)

// dnsConn answers each DNS query, in one UDP-like exchange, with one address.
type dnsConn struct {
	ip    net.IP
	reply []byte
}

// dnsAnswering is a connection to a name server for which every name is ip.
func dnsAnswering(ip net.IP) net.Conn { return &dnsConn{ip: ip.To4()} }

// Write takes a query (RFC 1035): with a two-byte length, since the resolver
// sees no packet connection.
func (c *dnsConn) Write(p []byte) (int, error) {
	query := p[2:]
	question := query[12:]
	end := 0
	for question[end] != 0 {
		end += int(question[end]) + 1
	}
	end += 5 // the root label, type and class
	kind := binary.BigEndian.Uint16(question[end-4:])
	answers := byte(0)
	if kind == 1 {
		answers = 1
	}
	msg := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, answers, 0, 0, 0, 0}, question[:end]...)
	if answers == 1 {
		msg = append(msg, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4)
		msg = append(msg, c.ip...)
	}
	c.reply = append(binary.BigEndian.AppendUint16(nil, uint16(len(msg))), msg...)
	return len(p), nil
}

func (c *dnsConn) Read(p []byte) (int, error) {
	n := copy(p, c.reply)
	c.reply = c.reply[n:]
	return n, nil
}

func (c *dnsConn) Close() error                     { return nil }
func (c *dnsConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *dnsConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *dnsConn) SetDeadline(time.Time) error      { return nil }
func (c *dnsConn) SetReadDeadline(time.Time) error  { return nil }
func (c *dnsConn) SetWriteDeadline(time.Time) error { return nil }
