package postgres

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"moorage/registry"
	"moorage/testkit/pgserver"
)

// moveBench is a store over its own server, which syncs, with one pointer for each client.
type moveBench struct {
	*Store
	direct *pgx.Conn
	next   atomic.Int64 // the next number of a change
}

const benchClientsMax = 64

func newMoveBench(b *testing.B) *moveBench {
	own, err := pgserver.Start()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := own.Stop(); err != nil {
			b.Error(err)
		}
	})
	if _, err := Migrate(b.Context(), own.DSN()); err != nil {
		b.Fatal(err)
	}
	s := &moveBench{Store: openStore(b, own.DSN(), Options{})}
	if s.direct, err = pgx.Connect(b.Context(), own.DSN()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.direct.Close(context.Background()) })
	for client := range benchClientsMax {
		s.mustApply(b, registry.Batch{Writes: []registry.Write{benchPointer(client)}})
	}
	return s
}

func (s *moveBench) mustApply(b *testing.B, batch registry.Batch) {
	if _, err := s.Apply(b.Context(), batch); err != nil {
		b.Fatal(err)
	}
}

func benchPointer(client int) registry.Write {
	return registry.Put(registry.PointerKey(faultID(client)), registry.StateLive, []byte(strings.Repeat("p", 450)))
}

// over returns w as a replacement of an equal record with this ETag.
func over(w registry.Write, etag registry.ETag) registry.Write {
	return w.Over(registry.Record{Key: w.Key, ETag: etag, State: w.State, Value: w.Value})
}

// commit returns the batch of a client: its pointer, and a change.
func (s *moveBench) commit(client int, etag registry.ETag) registry.Batch {
	return registry.Batch{
		Conditions: []registry.Condition{registry.ETagIs(registry.PointerKey(faultID(client)), etag)},
		Writes:     []registry.Write{over(benchPointer(client), etag)},
		Change:     &registry.Change{ID: faultID(int(s.next.Add(1)) + 1000), Operation: "commit", Principal: strings.Repeat("c", 300)},
	}
}

// sendWith applies a commit once, in one of the ways to send it.
func (s *moveBench) sendWith(ctx context.Context, batch registry.Batch,
	send func(sealed registry.Batch, etags []registry.ETag) error) (registry.ETag, error) {
	etags, err := s.newETags(batch)
	if err != nil {
		return registry.ETag{}, err
	}
	sealed, err := batch.Seal(etags)
	if err != nil {
		return registry.ETag{}, err
	}
	return etags[0], send(sealed, etags)
}

// ways are the ways to send a commit.
func (s *moveBench) ways(ctx context.Context) map[string]func(registry.Batch, []registry.ETag) error {
	return map[string]func(registry.Batch, []registry.ETag) error{
		"joined": func(sealed registry.Batch, etags []registry.ETag) error { return s.sendSealed(ctx, sealed, etags, 0) },
		"move":   func(sealed registry.Batch, etags []registry.ETag) error { return s.sendSealed(ctx, sealed, etags, 1) },
		"plan":   func(sealed registry.Batch, etags []registry.ETag) error { return s.send(ctx, newPlan(sealed, etags)) },
		"bare":   func(sealed registry.Batch, etags []registry.ETag) error { return s.bare(ctx, sealed, etags) },
	}
}

// bare sends the two statements of a commit without anything around them.
func (s *moveBench) bare(ctx context.Context, sealed registry.Batch, etags []registry.ETag) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	var batch pgx.Batch
	pointer, change, old := sealed.Writes[0], sealed.Writes[1], uuid(sealed.Conditions[0].ETag)
	batch.Queue("UPDATE moorage_pointer SET etag = $1, state = $2, value = $3 WHERE key = $4 AND etag = $5",
		uuid(etags[0]), int16(pointer.State), pointer.Value, []byte(pointer.Key.ID), old)
	batch.Queue("INSERT INTO moorage_change (key, etag, state, value, awaits, at) VALUES ($1, $2, $3, $4, true, clock_timestamp())",
		[]byte(change.Key.ID), uuid(etags[1]), int16(change.State), change.Value)
	return conn.SendBatch(ctx, &batch).Close()
}

// BenchmarkMove measures commits, with one table for each client: as a move, in the long form of
// other Applies, and as the two bare statements. It also reports the processor time of the server's
// processes.
func BenchmarkMove(b *testing.B) { benchmarkMoves(b, "bare", "move", "plan") }

// BenchmarkMoveJoined is like BenchmarkMove, with and without joined moves.
func BenchmarkMoveJoined(b *testing.B) { benchmarkMoves(b, "bare", "move", "joined") }

func benchmarkMoves(b *testing.B, names ...string) {
	s := newMoveBench(b)
	ways := s.ways(b.Context())
	for _, clients := range []int{1, 8, benchClientsMax} {
		for _, name := range names {
			b.Run(fmt.Sprintf("clients=%d/%s", clients, name), func(b *testing.B) {
				began := s.serverTime(b)
				b.ResetTimer()
				var commits atomic.Int64
				var group sync.WaitGroup
				for client := range clients {
					group.Go(func() {
						records, err := s.Get(b.Context(), registry.PointerKey(faultID(client)))
						if err != nil {
							b.Error(err)
							return
						}
						etag := records[0].ETag
						for err == nil && commits.Add(1) <= int64(b.N) {
							etag, err = s.sendWith(b.Context(), s.commit(client, etag), ways[name])
						}
						if err != nil {
							b.Error(err)
						}
					})
				}
				group.Wait()
				b.StopTimer()
				b.ReportMetric(float64((s.serverTime(b)-began).Microseconds())/float64(b.N), "server-µs/op")
			})
		}
	}
}

// serverTime returns the processor time of the server's processes so far.
func (s *moveBench) serverTime(b *testing.B) (total time.Duration) {
	rows, err := s.direct.Query(b.Context(), "SELECT pid FROM pg_stat_activity")
	if err != nil {
		b.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		b.Fatal(err)
	}
	const ticks = 100 // per second, on Linux
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // the process has ended
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		for _, field := range fields[11:13] { // utime and stime
			count, err := strconv.Atoi(field)
			if err != nil {
				b.Fatal(err)
			}
			total += time.Duration(count) * time.Second / ticks
		}
	}
	return total
}
