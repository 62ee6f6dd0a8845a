// SPDX-License-Identifier: Apache-2.0

package server

import "golang.org/x/sys/unix"

func peerOf(fd int) (uid int, err error) {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}
