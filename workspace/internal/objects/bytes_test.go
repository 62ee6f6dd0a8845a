// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"context"
)

// PutBytes keeps a content that is in memory, as Put does that of a file.
func (s *Store) PutBytes(content []byte) (Hash, error) {
	h, _, err := s.putFrom(context.Background(), bytes.NewReader(content), int64(len(content)))
	return h, err
}
