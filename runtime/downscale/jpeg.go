// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package downscale

// jpegFrame is what a JPEG's segments before its first scan tell of what decoding
// makes of it.
type jpegFrame struct {
	found, progressive bool
	// sampling are the factors of each component, horizontal in the upper four bits.
	sampling []byte
	rgb      bool // by the components' names
	plain    bool // an Adobe segment says that colours are stored as they are
}

// jpegBytes is what a JPEG's decoder makes: a plane for each component, smaller for
// chroma where that is subsampled; four bytes more for each sample of a
// progressive image, whose coefficients are kept; and a second image for colours
// that are no YCbCr. What cannot be told is charged the most.
func jpegBytes(data []byte, pixels int64) int64 {
	f := readFrame(data)
	if !f.found {
		return pixels * (4*5 + 4)
	}
	samples := samplesOf(f.sampling, pixels)
	total := samples
	if f.progressive {
		total += 4 * samples
	}
	if len(f.sampling) == 4 || f.rgb || f.plain {
		total += 4 * pixels
	}
	return total
}

// samplesOf counts the samples of all components. Only chroma of one sample for
// one, two or four of luma is kept so; anything else is brought to full size.
func samplesOf(sampling []byte, pixels int64) int64 {
	if len(sampling) != 3 || sampling[1] != 0x11 || sampling[2] != 0x11 {
		return int64(len(sampling)) * pixels
	}
	switch sampling[0] {
	case 0x21, 0x12:
		return 2 * pixels
	case 0x22:
		return 3 * pixels / 2
	case 0x41, 0x42: // 3/2 and 5/4
		return 3 * pixels / 2
	}
	return 3 * pixels
}

// readFrame walks the segments up to the first scan. One that is cut off or
// unexpected ends the walk.
func readFrame(data []byte) (f jpegFrame) {
	for at := 2; at+4 <= len(data) && data[at] == 0xff; {
		marker := data[at+1]
		switch {
		case marker == 0xff: // a fill byte
			at++
			continue
		case marker == 0x01 || marker >= 0xd0 && marker <= 0xd8: // without a length
			at += 2
			continue
		case marker == 0xd9 || marker == 0xda:
			return f
		}
		end := at + 2 + int(data[at+2])<<8 + int(data[at+3])
		if end < at+4 || end > len(data) {
			return f
		}
		f.read(marker, data[at+4:end])
		at = end
	}
	return f
}

// read takes one segment: a frame header (precision, height, width, and for each
// component its name, sampling and table), or Adobe's (name, version, two flags,
// transform).
func (f *jpegFrame) read(marker byte, segment []byte) {
	switch {
	case marker >= 0xc0 && marker <= 0xc2 && len(segment) >= 6 && len(segment) == 6+3*int(segment[5]):
		f.found, f.progressive = true, marker == 0xc2
		f.rgb = len(segment) == 15 && segment[6] == 'R' && segment[9] == 'G' && segment[12] == 'B'
		for i := 7; i < len(segment); i += 3 {
			f.sampling = append(f.sampling, segment[i])
		}
	case marker == 0xee && len(segment) >= 12 && string(segment[:5]) == "Adobe":
		f.plain = f.plain || segment[11] == 0
	}
}
