package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"moorage"
)

// One caller gets half of the room for bodies. Its further requests are refused at once, and the
// rest of the room is for others.
func TestOneCallerHasHalfOfTheRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const large = 1 << 20
		release := make(chan struct{})
		s := newHolding(Config{
			BodyBytesMax: large, BodiesBytesMax: 4 * large,
			Authenticate: func(r *http.Request) (moorage.Caller, error) {
				return moorage.Caller{Name: r.Header.Get("Authorization")}, nil
			},
		}, release)
		send := func(caller, name string) chan int {
			code := make(chan int, 1)
			go func() {
				r := httptest.NewRequest(http.MethodPost, "/v1/namespaces", strings.NewReader(createBody(name, large)))
				r.Header.Set("Authorization", caller)
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				code <- w.Code
			}()
			synctest.Wait()
			return code
		}
		held := []chan int{send("eve", "hold"), send("eve", "hold")}
		select {
		case code := <-send("eve", "x"):
			if code != http.StatusTooManyRequests {
				t.Errorf("the third body of one caller is answered %d, want 429", code)
			}
		default:
			t.Error("the third body of one caller waits")
		}
		for range 3 {
			if code := <-send("ann", "x"); code != http.StatusOK {
				t.Errorf("the body of another caller is answered %d", code)
			}
		}
		close(release)
		for _, code := range held {
			if code := <-code; code != http.StatusOK {
				t.Errorf("a body that was held is answered %d", code)
			}
		}
		if code := <-send("eve", "x"); code != http.StatusOK || len(s.bodies.of) > 0 || s.bodies.free != s.bodies.total {
			t.Errorf("after that the caller is answered %d, and %v hold room", code, s.bodies.of)
		}
	})
}

// All callers that see nothing share the part of one caller, however many they are.
func TestStrangersShareOnePart(t *testing.T) {
	t.Parallel()
	const large = 1 << 20
	s := New(Config{BodyBytesMax: large, BodiesBytesMax: 4 * large, Authenticate: func(*http.Request) (moorage.Caller, error) {
		return moorage.Caller{}, nil
	}})
	takes := func(caller string, isStranger bool) bool {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r = r.WithContext(moorage.WithCaller(r.Context(), moorage.Caller{Name: caller}))
		x := &exchange{ResponseWriter: httptest.NewRecorder()}
		if isStranger {
			MarkStranger(x)
		}
		return s.takeRoom(&incoming{exchange: x, request: r, began: s.config.Now()}, large) == nil
	}
	for i, row := range []struct {
		caller            string
		isStranger, taken bool
	}{
		{"a", true, true}, {"b", true, true}, {"c", true, false}, {"d", false, true}, {"c", true, false}, {"e", false, true},
	} {
		if taken := takes(row.caller, row.isStranger); taken != row.taken {
			t.Errorf("%d: %s has room: %t, want %t", i, row.caller, taken, row.taken)
		}
	}
}
