// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/filelock"
	"github.com/drover-agents/drover/internal/safelog"
)

// Options configure a [Fleet]. Set either Dir or URLs.
type Options struct {
	// Dir is the folder of the embedded server, which has no port. It is made if it is missing.
	Dir string
	// URLs are the servers of a NATS cluster with JetStream. Its servers must run with sync_interval set to always: a
	// client cannot set that.
	URLs []string
	// Credentials is a file of NATS credentials for the cluster. Empty means none.
	Credentials string
	// TLS configures connections to the cluster. Nil means what the URLs ask for.
	TLS *tls.Config
	// Replicas is how many servers of the cluster keep each message: 1, 3 or 5. Zero means 3 for a new fleet, and leaves one that
	// exists as it is. The embedded server has one.
	Replicas int
	// Name separates fleets that share a server: it begins the names of streams and subjects. Empty means "drover".
	Name string
	// Logger receives failures that the caller did not cause. Nil discards them.
	Logger *slog.Logger
}

// A Fleet keeps runs on NATS JetStream: their requests and their logs. It is safe for concurrent use.
type Fleet struct {
	name    string
	log     *slog.Logger
	server  *server.Server // nil in a cluster
	lock    *os.File       // of the folder of the embedded server
	conn    *nats.Conn
	js      jetstream.JetStream
	logs    jetstream.Stream
	work    jetstream.Stream // requests, requests to cancel, schedules and limits
	objects jetstream.ObjectStore
	limit   int // the longest body of a message; longer ones are objects
	now     func() time.Time
	check   time.Duration // how often the clock is read while a run or a schedule waits for its time

	ctx  context.Context // ends with Close
	stop context.CancelFunc
}

// ErrInUse means that another process, or another [Fleet] of this one, has the folder open.
var ErrInUse = errors.New("fleet: the folder is in use")

const (
	lockFile       = "drover.lock"
	connectTimeout = 10 * time.Second
	setUpTimeout   = 30 * time.Second
	closeTimeout   = 10 * time.Second
	// inlineLimit bounds the body of a message. A server accepts 1 MB by default; smaller messages keep others moving.
	inlineLimit = 256 << 10
)

// Open starts the embedded server of a folder, or connects to a cluster, and makes the streams that are missing there.
// The folder is locked until Close.
func Open(ctx context.Context, opts *Options) (*Fleet, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	switch {
	case o.Dir == "" && len(o.URLs) == 0:
		return nil, advice.Wrap(errors.New("fleet: neither a folder nor a cluster is named"), "set Options.Dir, or Options.URLs")
	case o.Dir != "" && (len(o.URLs) > 0 || o.Credentials != "" || o.TLS != nil || o.Replicas > 1):
		return nil, advice.Wrap(errors.New("fleet: Dir is for the embedded server; URLs, Credentials, TLS and Replicas are for a cluster"), "leave out Options.Dir, or the others")
	}
	if o.Dir != "" {
		return openEmbedded(ctx, &o)
	}
	dial := []nats.Option{nats.RetryOnFailedConnect(false)}
	if o.Credentials != "" {
		dial = append(dial, nats.UserCredentials(o.Credentials))
	}
	if o.TLS != nil {
		dial = append(dial, nats.Secure(o.TLS))
	}
	return connect(ctx, &o, strings.Join(o.URLs, ","), dial...)
}

func openEmbedded(ctx context.Context, o *Options) (*Fleet, error) {
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	ns, err := startServer(o.Dir)
	if err != nil {
		return nil, errors.Join(err, unlockDir(lock))
	}
	f, err := connect(ctx, o, "", nats.InProcessServer(ns))
	if err != nil {
		stopServer(ns)
		return nil, errors.Join(err, unlockDir(lock))
	}
	f.server, f.lock = ns, lock
	return f, nil
}

func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("fleet: making the folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("fleet: locking the folder: %w", err)
	}
	ok, err := filelock.Try(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("fleet: %w", err), f.Close())
	}
	if !ok {
		_ = f.Close() // nothing was written
		return nil, advice.Wrap(fmt.Errorf("%w: %s", ErrInUse, dir),
			"close the other Fleet, use another folder, or run a NATS cluster and set Options.URLs in both")
	}
	return f, nil
}

func unlockDir(f *os.File) error { return errors.Join(filelock.Unlock(f), f.Close()) }

// startServer starts a server without a port, whose clients are in this process. It syncs each write before the
// acknowledgement.
func startServer(dir string) (*server.Server, error) {
	ns, err := server.NewServer(&server.Options{
		ServerName: "drover", DontListen: true, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: dir, SyncAlways: true,
	})
	if err != nil {
		return nil, fmt.Errorf("fleet: starting the embedded server in %s: %w", dir, err)
	}
	ns.Start()
	if !ns.ReadyForConnections(setUpTimeout) {
		stopServer(ns)
		return nil, advice.Wrap(fmt.Errorf("fleet: the embedded server in %s is not ready after %s", dir, setUpTimeout),
			"check that the folder is writable and its disk has space")
	}
	return ns, nil
}

func stopServer(ns *server.Server) {
	ns.Shutdown()
	ns.WaitForShutdown()
}

// connect makes a fleet of a connection.
func connect(ctx context.Context, o *Options, url string, dial ...nats.Option) (*Fleet, error) {
	name := cmp.Or(o.Name, "drover")
	if !validToken(name) {
		return nil, advice.Wrap(fmt.Errorf("fleet: %q cannot be the name of a fleet", name), "use up to 64 letters, digits, - and _ in Options.Name")
	}
	log := safelog.Logger(o.Logger)
	conn, err := nats.Connect(url, append([]nats.Option{
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("the connection to NATS", "error", err) }),
		nats.Name("drover"), nats.MaxReconnects(-1), nats.Timeout(connectTimeout),
		nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, time.Second),
	}, dial...)...)
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("fleet: connecting to %s: %w", cmp.Or(url, "the embedded server"), err),
			"check Options.URLs, Credentials and TLS")
	}
	f := &Fleet{name: name, log: log, conn: conn, limit: min(inlineLimit, int(conn.MaxPayload())/2), now: time.Now, check: clockCheck}
	f.ctx, f.stop = context.WithCancel(context.Background())
	if err := f.setUp(ctx, len(o.URLs) > 0, o.Replicas); err != nil {
		f.stop()
		conn.Close()
		return nil, err
	}
	return f, nil
}

func (f *Fleet) setUp(ctx context.Context, cluster bool, replicas int) (err error) {
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout)
	defer cancel()
	if f.js, err = jetstream.New(f.conn); err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	switch existing, err := f.js.Stream(ctx, f.name+"-logs"); {
	case replicas > 0:
	case err == nil:
		replicas = existing.CachedInfo().Config.Replicas
	case !errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("fleet: looking for the streams of %q: %w", f.name, err)
	case cluster:
		replicas = 3
	default:
		replicas = 1
	}
	// Without direct reads the leader answers, which knows the last message.
	f.logs, err = f.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: f.name + "-logs", Subjects: []string{f.name + ".log.>"}, Replicas: replicas, Storage: jetstream.FileStorage, AllowMsgTTL: true,
		Description: "the logs of the runs of Drover",
	})
	if err == nil {
		f.work, err = f.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: f.name + "-work", MaxMsgsPerSubject: 1, Subjects: []string{f.name + ".work.*.*.*", f.name + ".cancel.*.*", f.name + ".schedule.*", f.limitsSubject(), f.admissionsSubject()},
			Replicas: replicas, Storage: jetstream.FileStorage, Description: "the requests of the runs of Drover",
		})
	}
	if err == nil {
		err = f.setUpObjects(ctx, replicas)
	}
	if err != nil {
		return advice.Wrap(fmt.Errorf("fleet: making the streams of %q: %w", f.name, err),
			"check that the server has JetStream enabled, space for %d copies, and that the credentials may make streams", replicas)
	}
	return nil
}

func (f *Fleet) setUpObjects(ctx context.Context, replicas int) error {
	_, err := f.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: f.name, Replicas: replicas, Storage: jetstream.FileStorage})
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return err
	}
	stream, err := f.js.Stream(ctx, "OBJ_"+f.name)
	if err != nil {
		return err
	}
	if config := stream.CachedInfo().Config; config.AllowDirect {
		config.AllowDirect = false
		if _, err := f.js.UpdateStream(ctx, config); err != nil {
			return err
		}
	}
	f.objects, err = f.js.ObjectStore(ctx, f.name)
	return err
}

// Close disconnects. It stops the embedded server and unlocks the folder. It may be called more than once.
func (f *Fleet) Close() error {
	if f.ctx.Err() != nil {
		return nil
	}
	f.stop()
	f.conn.Close()
	if f.server == nil {
		return nil
	}
	stopServer(f.server)
	return unlockDir(f.lock)
}

// streamOf is the stream of a subject.
func (f *Fleet) streamOf(subject string) jetstream.Stream {
	if strings.HasPrefix(subject, f.name+".log.") {
		return f.logs
	}
	return f.work
}

// validToken reports whether a text can be one token of a subject, and part of the name of a stream.
func validToken(s string) bool {
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}) < 0
}
