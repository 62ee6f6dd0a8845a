// SPDX-License-Identifier: Apache-2.0

package plainjson

// Member finds the value of a member in the object that begins at an offset of a valid text.
func Member(raw []byte, at int, name string) (from, to int, ok bool) {
	var s Scanner
	s.ResetTrusted(raw[at:])
	if s.Kind() != Object || !s.Object() {
		return 0, 0, false
	}
	for {
		key, more := s.Field()
		if !more {
			return 0, 0, false
		}
		start := s.Pos()
		s.Skip()
		if string(key) == name {
			return at + start, at + s.Pos(), true
		}
	}
}
