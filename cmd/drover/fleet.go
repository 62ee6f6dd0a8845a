// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/internal/safetext"
)

// fleetFlags choose a fleet on a NATS cluster.
type fleetFlags struct {
	urls        urlList
	credentials string
	ca          string
	cert, key   string
	replicas    int
	name        string
}

func (f *fleetFlags) addFlags(flags *pflag.FlagSet) {
	flags.Var(&f.urls, "nats", "the servers of a NATS cluster with JetStream: nats://a:4222,nats://b:4222")
	flags.Var(textFlag{&f.credentials, "file"}, "credentials", "a file of NATS credentials")
	flags.Var(textFlag{&f.ca, "file"}, "tls-ca", "trust servers with a certificate of this CA (default: those of the system)")
	flags.Var(textFlag{&f.cert, "file"}, "tls-cert", "a certificate for the servers")
	flags.Var(textFlag{&f.key, "file"}, "tls-key", "its key")
	flags.IntVar(&f.replicas, "replicas", 0, "how many servers keep each message: 1, 3 or 5 (default: 3 for a new fleet)")
	flags.Var(textFlag{&f.name, "name"}, "fleet", "the name of the fleet, where several share a cluster (default drover)")
}

// A urlList is a list of addresses of servers.
type urlList []string

func (l *urlList) Type() string   { return "url[,url]" }
func (l *urlList) String() string { return strings.Join(*l, ",") }

func (l *urlList) Set(value string) error {
	urls := splitList(value)
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || (u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "ws" && u.Scheme != "wss") {
			return advice.Wrap(errors.New("it is not the address of a NATS server"), "write addresses such as nats://host:4222, with commas between them")
		}
	}
	if len(urls) == 0 {
		return advice.Wrap(errors.New("it is empty"), "write addresses such as nats://host:4222, with commas between them")
	}
	*l = append(*l, urls...)
	return nil
}

// secrets are the passwords and tokens in the addresses.
func (f *fleetFlags) secrets() (values []string) {
	for _, text := range f.urls {
		u, err := url.Parse(text)
		if err != nil || u.User == nil {
			continue
		}
		if password, has := u.User.Password(); has {
			values = append(values, password)
		} else {
			values = append(values, u.User.Username()) // a token
		}
	}
	return values
}

// check refuses flags that have no meaning together.
func (f *fleetFlags) check() error {
	switch {
	case (f.cert == "") != (f.key == ""):
		return advice.Wrap(usageError("--tls-cert and --tls-key belong together"), "give both")
	case f.replicas != 0 && f.replicas != 1 && f.replicas != 3 && f.replicas != 5:
		return advice.Wrap(usageError("--replicas: %d servers cannot keep a message", f.replicas), "give 1, 3 or 5")
	}
	return nil
}

// open connects to the fleet.
func (f *fleetFlags) open(ctx context.Context, errs io.Writer) (*fleet.Fleet, error) {
	config, err := f.tlsConfig()
	if err != nil {
		return nil, err
	}
	opened, err := fleet.Open(ctx, &fleet.Options{
		URLs: f.urls, Credentials: f.credentials, TLS: config, Replicas: f.replicas, Name: f.name, Logger: f.logger(errs),
	})
	if err != nil {
		return nil, withoutSecrets(err, f.secrets())
	}
	return opened, nil
}

func (f *fleetFlags) logger(errs io.Writer) *slog.Logger {
	handler := slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn})
	return slog.New(safetext.NewRedactor(f.secrets()...).Handler(handler))
}

func (f *fleetFlags) tlsConfig() (*tls.Config, error) {
	if f.ca == "" && f.cert == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		if config.RootCAs = x509.NewCertPool(); err == nil && !config.RootCAs.AppendCertsFromPEM(text) {
			err = fmt.Errorf("%s has no certificate", f.ca)
		}
		if err != nil {
			return nil, advice.Wrap(usageError("--tls-ca: %w", err), "give the file of the CA's certificate, as PEM")
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, advice.Wrap(usageError("--tls-cert, --tls-key: %w", err), "give the files of a certificate and of its key, as PEM")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
