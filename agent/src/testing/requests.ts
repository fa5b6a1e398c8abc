// Requests for tests of delivery. Bodies are texts with one letter per event.

import { type Codec, framed, OpenRequest, type Request, sealRequest } from '../delivery/request.ts'
import { BodyPool } from '../event/body.ts'
import { type BatchStatus, Finalizer } from '../event/finalizer.ts'

const plain: Codec = { compress: (body: Buffer) => body, decompress: (payload: Buffer) => payload }

/** A request with one event per letter, all with the same finalizer. */
export function fakeRequest(
  letters = 'a',
  finalized: (status: BatchStatus) => void = () => {},
  codec = plain,
  pool = new BodyPool(64),
): Request {
  const finalizer = new Finalizer(finalized)
  finalizer.retain(letters.length - 1)
  const open = new OpenRequest('', pool.take())
  for (const letter of letters) {
    const start = open.body.length
    open.body.writeText(letter)
    open.mark(start)
  }
  open.owners.add(finalizer, letters.length)
  open.bytes = letters.length * 10
  return sealRequest(open, pool, codec, framed('', '', ''))
}

/** The letters of a request. */
export function lettersOf(request: Request): string {
  return request.payload.toString('utf8')
}
