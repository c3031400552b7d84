package cluster

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"
)

// addresses returns a view of n nodes.
func addresses(n int) View {
	var members []Member
	for i := range n {
		members = append(members, Member{Session: fmt.Sprint("s", i), Address: fmt.Sprintf("node-%d:8182", i)})
	}
	return NewView(1, members)
}

// pointer returns one of many ids.
func pointer(i int) (id Pointer) {
	binary.BigEndian.PutUint64(id[8:], uint64(i))
	return id
}

const pointersCount = 20_000

// Each of n nodes owns about as many pointers as the others.
func TestOwnersSpread(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 10, 100} {
		view := addresses(n)
		owned := map[string]int{}
		for i := range pointersCount {
			owner, found := view.Owner(pointer(i))
			if !found {
				t.Fatal("no owner")
			}
			owned[owner.Address]++
		}
		share := float64(pointersCount) / float64(n)
		for address, count := range owned {
			if off := float64(count)/share - 1; len(owned) != n || off > 0.35 || off < -0.35 || n <= 10 && (off > 0.1 || off < -0.1) {
				t.Errorf("%d nodes: %s owns %d, want about %.0f; %d own any", n, address, count, share, len(owned))
			}
		}
	}
}

// A node that joins takes over its pointers, and no others move. When a node leaves, only its
// pointers move.
func TestOwnersMove(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3, 10} {
		larger := addresses(n)
		joined := larger.Members[n-1].Address
		smaller := NewView(0, larger.Members[:n-1])
		moved := 0
		for i := range pointersCount {
			before, _ := smaller.Owner(pointer(i))
			after, _ := larger.Owner(pointer(i))
			if before != after {
				moved++
				if after.Address != joined {
					t.Fatalf("pointer %d moved from %s to %s, which were both there", i, before.Address, after.Address)
				}
			}
		}
		if most := float64(pointersCount) / float64(n) * 1.1; float64(moved) > most || moved == 0 {
			t.Errorf("node %d joins: %d pointers move, want 1/%d of %d", n, moved, n, pointersCount)
		}
	}
}

// The owner depends only on the addresses and the pointer, not on sessions or the order.
func TestOwnerAgrees(t *testing.T) {
	t.Parallel()
	view := addresses(5)
	members := slices.Clone(view.Members)
	slices.Reverse(members)
	for i := range members {
		members[i].Session += " of another life"
	}
	members = append(members, Member{Session: "zz", Address: members[0].Address})
	other := NewView(2, members)
	if len(other.Members) != 5 {
		t.Fatalf("%d members, want two sessions of one address to be one", len(other.Members))
	}
	for i := range 1000 {
		one, _ := view.Owner(pointer(i))
		two, _ := other.Owner(pointer(i))
		if one.Address != two.Address {
			t.Fatalf("pointer %d: %s and %s", i, one.Address, two.Address)
		}
	}
	if _, found := (View{}).Owner(pointer(1)); found {
		t.Error("a view without members has an owner")
	}
}

func TestOwnerAllocatesNothing(t *testing.T) {
	view := addresses(100)
	if allocations := testing.AllocsPerRun(100, func() { view.Owner(pointer(7)) }); allocations > 0 {
		t.Errorf("%.0f allocations", allocations)
	}
}

// A view that is older than the present one, or the same, is ignored.
func TestOlderViewIsIgnored(t *testing.T) {
	t.Parallel()
	var v views
	start := time.Unix(1000, 0)
	for _, step := range []struct {
		number  int64
		members int
		learned bool
		want    int64
	}{
		{5, 1, true, 5}, {4, 2, false, 5}, {5, 3, false, 5}, {7, 2, true, 7}, {6, 1, false, 7},
	} {
		view := addresses(step.members)
		view.Number = step.number
		if learned := v.learn(view, start); learned != step.learned || v.now().Number != step.want {
			t.Errorf("view %d: learned %t, present %d, want %t and %d", step.number, learned, v.now().Number,
				step.learned, step.want)
		}
	}
	if len(v.now().Members) != 2 {
		t.Errorf("present view: %v, want that of number 7", v.now())
	}
}

// The last eight views are kept, with the times at which they were read.
func TestViewsKept(t *testing.T) {
	t.Parallel()
	var v views
	for i := range 20 {
		v.learn(View{Number: int64(i + 1)}, time.Unix(int64(i), 0))
	}
	history := v.history()
	if len(history) != 8 {
		t.Fatalf("%d views are kept, want 8", len(history))
	}
	for i, seen := range history {
		if want := int64(13 + i); seen.Number != want || !seen.Since.Equal(time.Unix(want-1, 0)) {
			t.Errorf("%d: number %d since %v, want %d", i, seen.Number, seen.Since, want)
		}
	}
}

func BenchmarkOwner(b *testing.B) {
	for _, n := range []int{3, 100} {
		view := addresses(n)
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				view.Owner(pointer(i))
			}
		})
	}
}
