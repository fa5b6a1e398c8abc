// Text for logs without the secrets that it may repeat.

/** The text with asterisks in place of a secret. */
export function withoutSecret(text: string, secret: string): string {
  return secret === '' ? text : text.replaceAll(secret, '***')
}
