// The connection to the operator: its address, the certificate authority it must have, and the pod's token. All are read again
// for each request, because certificate and token are replaced while the agent runs.

import { readFileSync } from 'node:fs'
import { PenstockError } from '../errors.ts'
import { HttpClient, type HttpResponse } from '../http/client.ts'
import { compileTls } from '../net/tls.ts'
import { tls } from '../schema/groups.ts'
import { parseOptions } from '../schema/validate.ts'

export interface OperatorAddress {
  readonly url: string
  readonly tokenFile: string
  /** PEM file with the operator's certificate authority; if it does not exist, the system's authorities are used. */
  readonly caFile: string
}

const tlsOptions = { tls: tls() }

export class OperatorClient {
  readonly #address: OperatorAddress
  #client: HttpClient | undefined

  constructor(address: OperatorAddress) {
    this.#address = address
  }

  /** @param keep maximum size of the response; the client's default if not given */
  async post(path: string, body: Buffer | object, signal: AbortSignal, keep?: number): Promise<HttpResponse> {
    const { url, tokenFile } = this.#address
    this.#client ??= new HttpClient({ tls: this.#tls(), proxy: () => undefined })
    try {
      return await this.#client.send(
        {
          method: 'POST',
          url: new URL(path, url),
          headers: {
            'content-type': 'application/json',
            authorization: `Bearer ${readFileSync(tokenFile, 'utf8').trim()}`,
          },
          body: Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)),
        },
        signal,
        keep,
      )
    } catch (error) {
      // Its certificate and authority may have been replaced.
      await this.close()
      throw error
    }
  }

  async close(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    await client?.close()
  }

  #tls() {
    let ca: string | undefined
    try {
      ca = readFileSync(this.#address.caFile, 'utf8')
    } catch {
      // Without the file, the system's authorities are used.
    }
    const parsed = parseOptions(tlsOptions, { tls: ca === undefined ? {} : { ca_file: ca } })
    if (!parsed.ok) throw new PenstockError('PEN_TLS_INVALID', `${this.#address.caFile} contains no certificate.`)
    return compileTls(parsed.value.tls)
  }
}
