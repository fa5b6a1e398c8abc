// Shared by the sinks of services with AWS signatures: a client for the requests about credentials, and the signing.

import type { Attempt } from '../delivery/delivery.ts'
import { PenstockError } from '../errors.ts'
import { HttpClient, type HttpResponse } from '../http/client.ts'
import { identityFor, noIdentity } from '../http/identity.ts'
import type { Sign } from '../http/sink.ts'
import { compileProxy } from '../net/proxy.ts'
import { compileTls } from '../net/tls.ts'
import type { ProxyOptions } from '../schema/groups.ts'
import { retryAws } from './classify.ts'
import { type AwsAuth, CredentialProvider, regionVariableNames } from './credentials.ts'
import { findRegion } from './region.ts'
import { type Credentials, signRequest } from './sigv4.ts'

export interface SignedClient {
  readonly client: HttpClient
  readonly sign: Sign
  /** Judges an answer again that its status alone would reject. */
  readonly judge: (response: HttpResponse, attempt: Attempt) => Attempt
}

/** Throws a PenstockError if no place names the region. */
export async function signedClient(
  service: string,
  auth: AwsAuth,
  region: string | undefined,
  tls: Parameters<typeof compileTls>[0],
  proxy: ProxyOptions,
): Promise<SignedClient> {
  const identity = identityFor(proxy)
  const client = new HttpClient({ tls: compileTls(tls), proxy: compileProxy(proxy) })
  const found = await findRegion(region, auth, { client, identity })
  if (found === undefined) {
    await client.close()
    await identity?.nodeClient?.close()
    const why =
      identity === undefined
        ? noIdentity
        : `Set it, or ${regionVariableNames} in the environment: neither they, nor a profile, nor the instance names one.`
    const message = `aws.region required when AWS authentication is in use. ${why}`
    throw new PenstockError('PEN_AUTH', message, { fact: message })
  }
  const credentials = new CredentialProvider(auth, { client, identity, region: found })
  const scope = { region: found, service }
  let used: Credentials | undefined
  const renew = (): boolean => {
    if (used !== undefined) credentials.refused(used)
    return credentials.renewable
  }
  return {
    client,
    async sign(unsigned) {
      used = await credentials.get()
      return signRequest(unsigned, used, scope, Date.now())
    },
    judge: (response, attempt) => retryAws(response, attempt, renew),
  }
}
