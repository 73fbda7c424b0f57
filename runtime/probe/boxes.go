// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "encoding/binary"

// boxes is a row of boxes (ISO/IEC 14496-12, 4.2), or the content of one.
type boxes struct {
	data []byte
	open bool // it goes on behind data
}

// next reads the first box: 32 bits of length, header included, and four
// letters. A length of 1 stands for 64 bits behind them, 0 for all that is
// left. A box that goes on past the data is open, and so is one of all that is
// left, of which nobody can say that it is whole.
func (v boxes) next() (name []byte, content, rest boxes, ok bool) {
	b := v.data
	if len(b) < 8 {
		return nil, boxes{}, boxes{}, false
	}
	size, head := uint64(binary.BigEndian.Uint32(b)), uint64(8)
	open := false
	switch {
	case size == 1 && len(b) >= 16:
		size, head = binary.BigEndian.Uint64(b[8:]), 16
	case size == 0:
		size, open = uint64(len(b)), true
	}
	if size < head {
		return nil, boxes{}, boxes{}, false
	}
	end := min(size, uint64(len(b)))
	open = open || end < size
	return b[4:8], boxes{b[head:end], open}, boxes{b[end:], v.open || open}, true
}

// find is the content of the first box of that name. When there is none,
// cutOff says that it may stand behind the data.
func (v boxes) find(want string) (content boxes, cutOff bool) {
	rest := v
	for {
		name, content, after, ok := rest.next()
		switch {
		case !ok:
			return boxes{}, rest.open || len(rest.data) > 0 && len(rest.data) < 8
		case string(name) == want:
			return content, false
		}
		rest = after
	}
}

// nth is the n-th box, from 1 on; no name when there is none.
func (v boxes) nth(n int) (name []byte, content boxes) {
	for ; n > 0; n-- {
		var ok bool
		if name, content, v, ok = v.next(); !ok {
			return nil, boxes{}
		}
	}
	return name, content
}
