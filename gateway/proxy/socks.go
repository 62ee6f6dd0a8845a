// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"
)

const (
	socksConnect = 1 // the one command of three that is served

	socksIPv4 = 1
	socksName = 3
	socksIPv6 = 4
)

// maxSOCKSText bounds the user and the name of SOCKS4a, which end with a zero byte.
const maxSOCKSText = 256

type socksRequest struct {
	command byte
	host    string // as it was written
	port    uint16
}

// serveSOCKS5 follows RFC 1928, without authentication: any client that reaches the listener may use it.
func (p *Proxy) serveSOCKS5(c *inbound) {
	// The buffer is as small as it can be: what it holds after the request belongs to the tunnel.
	r := bufio.NewReaderSize(c, 512)
	if !greetSOCKS5(r, c) {
		return
	}
	request, err := readSOCKS5(r)
	if errors.Is(err, errSOCKSAddress) {
		_, _ = c.Write(socks5Reply(socksUnknownAddress))
	}
	if err != nil {
		return
	}
	p.serveSOCKS(c, r, ProtocolSOCKS5, request, socks5Reply)
}

// greetSOCKS5 agrees on no authentication, the only method there is.
func greetSOCKS5(r io.Reader, w io.Writer) bool {
	head := make([]byte, 2)
	if _, err := io.ReadFull(r, head); err != nil {
		return false
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(r, methods); err != nil {
		return false
	}
	if !bytes.Contains(methods, []byte{0}) {
		_, _ = w.Write([]byte{5, 0xff})
		return false
	}
	_, err := w.Write([]byte{5, 0})
	return err == nil
}

var (
	errSOCKS        = errors.New("proxy: no SOCKS request")
	errSOCKSAddress = fmt.Errorf("%w: unknown kind of address", errSOCKS)
)

func readSOCKS5(r io.Reader) (socksRequest, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return socksRequest{}, err
	}
	if head[0] != 5 || head[2] != 0 {
		return socksRequest{}, errSOCKS
	}
	host, err := readSOCKS5Host(r, head[3])
	if err != nil {
		return socksRequest{}, err
	}
	port := make([]byte, 2)
	_, err = io.ReadFull(r, port)
	return socksRequest{head[1], host, binary.BigEndian.Uint16(port)}, err
}

func readSOCKS5Host(r io.Reader, kind byte) (string, error) {
	var size [1]byte
	switch kind {
	case socksIPv4:
		size[0] = 4
	case socksIPv6:
		size[0] = 16
	case socksName:
		if _, err := io.ReadFull(r, size[:]); err != nil {
			return "", err
		}
	default:
		return "", errSOCKSAddress
	}
	text := make([]byte, size[0])
	if _, err := io.ReadFull(r, text); err != nil {
		return "", err
	}
	if addr, ok := netip.AddrFromSlice(text); ok && kind != socksName {
		return addr.String(), nil
	}
	return string(text), nil
}

func socks5Reply(code byte) []byte {
	return []byte{5, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0}
}

func (p *Proxy) serveSOCKS4(c *inbound) {
	r := bufio.NewReaderSize(c, 512)
	request, err := readSOCKS4(r)
	if err != nil {
		return
	}
	p.serveSOCKS(c, r, ProtocolSOCKS4, request, socks4Reply)
}

func readSOCKS4(r *bufio.Reader) (socksRequest, error) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(r, head); err != nil {
		return socksRequest{}, err
	}
	request := socksRequest{command: head[1], port: binary.BigEndian.Uint16(head[2:])}
	addr := netip.AddrFrom4([4]byte(head[4:]))
	request.host = addr.String()
	_, err := readZeroEnded(r) // the user, which is ignored
	// 0.0.0.x with x other than 0 announces a name.
	if octets := addr.As4(); err == nil && bytes.Equal(octets[:3], []byte{0, 0, 0}) && octets[3] != 0 {
		request.host, err = readZeroEnded(r)
	}
	return request, err
}

func readZeroEnded(r *bufio.Reader) (string, error) {
	var text []byte
	for len(text) < maxSOCKSText {
		c, err := r.ReadByte()
		if err != nil {
			return "", err
		}
		if c == 0 {
			return string(text), nil
		}
		text = append(text, c)
	}
	return "", errSOCKS
}

// socks4Reply knows only granted and refused.
func socks4Reply(code byte) []byte {
	answer := byte(0x5b)
	if code == socksGranted {
		answer = 0x5a
	}
	return []byte{0, answer, 0, 0, 0, 0, 0, 0}
}

func (p *Proxy) serveSOCKS(c *inbound, r *bufio.Reader, protocol Protocol, request socksRequest, reply func(byte) []byte) {
	_ = c.SetReadDeadline(time.Time{}) // until here it was that of the first byte
	a := p.attempt(protocol, request.host, request.port)
	t, problem := p.readSOCKSTarget(c, request)
	var out *outbound
	if problem != nil {
		a.refuse(problem)
	} else {
		out, problem = a.open(p.ctx, t)
	}
	if problem != nil {
		p.refuseSOCKS(c, reply(problem.socks))
		return
	}
	defer p.forget(out)
	if _, err := c.Write(reply(socksGranted)); err != nil {
		_ = out.Close()
		a.end(out, "the client was lost")
		return
	}
	early, _ := r.Peek(r.Buffered())
	a.end(out, p.tunnel(c, out, early))
}

// refuseSOCKS answers and lets the client hang up first, for a while: closing with unread bytes would take the answer back.
func (p *Proxy) refuseSOCKS(c *inbound, answer []byte) {
	if _, err := c.Write(answer); err != nil || c.CloseWrite() != nil {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = io.CopyN(io.Discard, c, maxHeader)
}

func (p *Proxy) readSOCKSTarget(c *inbound, request socksRequest) (target, *problem) {
	if request.command != socksConnect {
		problem := denied(textCommand, textCommandNext)
		problem.socks = socksUnknownCommand
		return target{}, problem
	}
	h, err := parseHost(request.host)
	if err != nil {
		return target{}, malformed(err.Error())
	}
	if request.port == 0 {
		return target{}, malformed(textPortForm)
	}
	if c.busy {
		return target{}, tooMany(p.options.MaxConnections)
	}
	return target{h, request.port}, nil
}
