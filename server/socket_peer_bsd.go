// SPDX-License-Identifier: Apache-2.0

//go:build darwin || freebsd

package server

import "golang.org/x/sys/unix"

func peerOf(fd int) (uid int, err error) {
	peer, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}
