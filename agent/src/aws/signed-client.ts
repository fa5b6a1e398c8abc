// For sinks of services with AWS signatures: a client for requests about credentials, and the signing of requests.

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
  /** Reclassifies a response that would be rejected by its status alone. */
  readonly reclassify: (response: HttpResponse, attempt: Attempt) => Attempt
}

/** Throws a PenstockError if the region is unknown. */
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
        : `Set \`aws.region\`, or set ${regionVariableNames} in the environment. No profile or instance metadata contains a region either.`
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
    reclassify: (response, attempt) => retryAws(response, attempt, renew),
  }
}
