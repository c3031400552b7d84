package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"moorage"
)

// Memory for a body grows with what has arrived of it, whatever its header announces: it doubles, from bodyBytesFirst on.
const (
	// bodyBytesFirst holds the usual commit, and is little for a client that sends no more than a header.
	bodyBytesFirst = 4 << 10
	// bodyBytesFree is up to which length bodies ask for no room: nearly all are shorter.
	bodyBytesFree = 64 << 10
)

// A body may take as long as its client needs, if that is honest about it: what stands still, or trickles, holds a connection.
const (
	// bodyPatience is how long a body may bring nothing at first: a client may have to wait for its own disk or line.
	bodyPatience = 20 * time.Second
	// bodyRateLeast is how many bytes a second a body must have brought on average after that. A line of 128 kbit/s has so many.
	bodyRateLeast = 16 << 10
	// bodyTimeMax is for the whole body: the longest one of the default has to come at 220 KiB a second.
	bodyTimeMax = 5 * time.Minute
)

// roomWait is how long a large body waits for room that others have taken, all in all: less than clients do for an answer.
const roomWait = 5 * time.Second

// incoming is the body of a request while it arrives.
type incoming struct {
	exchange *exchange
	request  *http.Request
	wants    int64     // the length that it can have; one more if it is not known, to see that it is longer
	began    time.Time // without the time that it waited for room
	waited   time.Duration
	text     []byte
}

// readBody returns the whole body of r. One that is longer than allowed is KindTooLarge, a large one for which there
// is no room KindTooManyRequests.
func (s *server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, moorage.Errorf(moorage.KindBadRequest, "Content-Encoding %q is not supported for requests", encoding)
	}
	if r.ContentLength > s.config.BodyBytesMax {
		return nil, s.tooLarge(w)
	}
	in := incoming{exchange: w.(*exchange), request: r, wants: r.ContentLength, began: s.config.Now()}
	if in.wants < 0 {
		in.wants = s.config.BodyBytesMax + 1
	}
	for {
		if err := s.grow(&in); err != nil {
			return nil, err
		}
		s.setReadDeadline(in.exchange, in.deadline())
		n, err := r.Body.Read(in.text[len(in.text):cap(in.text)])
		in.text = in.text[:len(in.text)+n]
		switch {
		case int64(len(in.text)) > s.config.BodyBytesMax:
			return nil, s.tooLarge(w)
		case errors.Is(err, io.EOF):
			s.setReadDeadline(in.exchange, time.Time{})
			return in.text, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.hangUp(w)
			return nil, moorage.Errorf(moorage.KindBadRequest, "The request body came too slowly: %d bytes in %s; nothing was changed",
				len(in.text), s.config.Now().Sub(in.began).Round(time.Second))
		case err != nil:
			return nil, moorage.Errorf(moorage.KindBadRequest, "The request body ended early")
		}
	}
}

// grow makes room for further bytes of in, if there is none.
func (s *server) grow(in *incoming) error {
	was := int64(cap(in.text))
	if int64(len(in.text)) < was {
		return nil
	}
	// One byte more than is wanted, for the read that finds the end.
	grown := max(min(max(2*was, bodyBytesFirst), in.wants+1), was+1)
	if grown > bodyBytesFree {
		if err := s.takeRoom(in, min(grown, in.wants, s.config.BodyBytesMax)-in.exchange.room.held); err != nil {
			return err
		}
	}
	text := make([]byte, len(in.text), grown)
	copy(text, in.text)
	in.text = text
	return nil
}

// takeRoom waits until there is room for so many further bytes of a body, and takes it until the request is answered.
func (s *server) takeRoom(in *incoming, bytes int64) error {
	if bytes <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(in.request.Context(), roomWait-in.waited)
	defer cancel()
	before := s.config.Now()
	taken := s.bodies.take(ctx, &in.exchange.room, bytes)
	waited := s.config.Now().Sub(before)
	in.waited += waited
	in.began = in.began.Add(waited)
	if taken {
		return nil
	}
	if err := in.request.Context().Err(); err != nil {
		return err
	}
	s.hangUp(in.exchange)
	return moorage.Errorf(moorage.KindTooManyRequests, "Too many large requests are being answered; nothing was changed")
}

// deadline returns until when more of the body must have come.
func (in *incoming) deadline() time.Time {
	earned := time.Duration(len(in.text)) * time.Second / bodyRateLeast
	return in.began.Add(min(bodyPatience+earned, bodyTimeMax))
}

// expectBody bounds how long the body of r may take to begin, also if nobody reads it: net/http does, behind the answer.
func (s *server) expectBody(x *exchange, r *http.Request) {
	if r.ContentLength != 0 {
		s.setReadDeadline(x, s.config.Now().Add(bodyPatience))
	}
}

// setReadDeadline bounds the reads of the connection; the zero time: not any more.
func (s *server) setReadDeadline(x *exchange, deadline time.Time) {
	_ = http.NewResponseController(x.ResponseWriter).SetReadDeadline(deadline) // only a connection has one
}

// hangUp lets the answer end the connection, and go out before the rest of the body has come in: net/http
// would wait for a part of it.
func (s *server) hangUp(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).EnableFullDuplex() // without it the client waits longer, no more
}

func (s *server) tooLarge(w http.ResponseWriter) error {
	s.hangUp(w)
	return moorage.Errorf(moorage.KindTooLarge, "The request body is longer than %d bytes", s.config.BodyBytesMax)
}
