// Camera: the visible part of the drawing, and its scale.
//
// A point of the drawing (x, y) is on the screen at ((x - camera.x) * camera.k, ...).

const [NEAREST, FARTHEST] = [4, 0.002];

class Camera {
  constructor() {
    Object.assign(this, { x: 0, y: 0, k: 1, width: 1, height: 1, glide: null });
  }

  toScreen(x, y) { return [(x - this.x) * this.k, (y - this.y) * this.k]; }
  toDrawing(sx, sy) { return [sx / this.k + this.x, sy / this.k + this.y]; }

  pan(dx, dy) {
    this.glide = null;
    this.x -= dx / this.k;
    this.y -= dy / this.k;
  }

  // Zoom; the point at (sx, sy) on the screen does not move.
  zoom(factor, sx = this.width / 2, sy = this.height / 2) {
    this.glide = null;
    const [x, y] = this.toDrawing(sx, sy);
    this.k = Math.min(NEAREST, Math.max(FARTHEST, this.k * factor));
    this.x = x - sx / this.k;
    this.y = y - sy / this.k;
  }

  // Show the whole drawing; a small one is enlarged only slightly.
  fit(scene, smoothly) {
    const margin = 20;
    const legend = this.width > 700 ? 140 : margin; // which is at the left
    const [w, h] = [this.width - legend - margin, this.height - 2 * margin];
    const k = Math.min(1.25, Math.max(FARTHEST, Math.min(w / scene.w, h / scene.h)));
    this.moveTo(scene.w / 2 - (legend + w / 2) / k, scene.h / 2 - this.height / 2 / k, k, smoothly);
  }

  // Bring a box into view, large enough to be legible.
  show(box, smoothly) {
    const k = Math.max(this.k, Math.min(0.9, (this.width * 0.8) / box.w));
    const [x, y] = [box.x + box.w / 2, box.y + Math.min(box.h / 2, this.height / 2 / k)];
    this.moveTo(x - this.width / 2 / k, y - this.height / 2 / k, k, smoothly);
  }

  contains(box) {
    const [x0, y0] = this.toScreen(box.x, box.y);
    const [x1, y1] = this.toScreen(box.x + box.w, box.y + box.h);
    return x0 >= 0 && y0 >= 0 && x1 <= this.width && y1 <= this.height;
  }

  moveTo(x, y, k, smoothly) {
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!smoothly || still) {
      Object.assign(this, { x, y, k, glide: null });
    } else this.glide = { from: [this.x, this.y, this.k], to: [x, y, k], since: performance.now() };
  }

  // One frame of a smooth movement; returns whether it continues.
  step(now) {
    if (!this.glide) return false;
    const t = Math.min(1, Math.max(0, (now - this.glide.since) / 220));
    const ease = 1 - (1 - t) ** 3;
    const [a, b] = [this.glide.from, this.glide.to];
    this.k = a[2] * (b[2] / a[2]) ** ease;
    // The center moves evenly on the screen while the scale changes.
    const middle = (v, d, size) => v[d] + size / 2 / v[2];
    const along = (d, size) => middle(a, d, size) + (middle(b, d, size) - middle(a, d, size)) * ease;
    this.x = along(0, this.width) - this.width / 2 / this.k;
    this.y = along(1, this.height) - this.height / 2 / this.k;
    if (t === 1) {
      [this.x, this.y, this.k] = b;
      this.glide = null;
    }
    return t < 1;
  }
}

// Minimap: the whole drawing in a corner, with a frame for the view; click or drag to move it.

class Minimap {
  constructor(canvas, onMove) {
    this.canvas = canvas;
    this.picture = document.createElement("canvas");
    const go = (event) => {
      if (!this.scale || !(event.buttons & 1)) return;
      const box = canvas.getBoundingClientRect();
      onMove((event.clientX - box.left - this.left) / this.scale, (event.clientY - box.top - this.top) / this.scale);
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      go(event);
    });
    canvas.addEventListener("pointermove", go);
  }

  // Draw the boxes, once for each scene.
  take(scene, theme) {
    this.canvas.hidden = false;
    const [w, h] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.picture]) [canvas.width, canvas.height] = [w * ratio, h * ratio];
    this.scale = Math.min((w - 8) / scene.w, (h - 8) / scene.h);
    [this.left, this.top] = [(w - scene.w * this.scale) / 2, (h - scene.h * this.scale) / 2];
    const context = this.picture.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.ground;
    context.fillRect(0, 0, w, h);
    context.translate(this.left, this.top);
    context.scale(this.scale, this.scale);
    for (const box of scene.boxes) {
      if (box.open && box.group.parent < 0) continue;
      if (box.open) context.fillStyle = box.depth % 2 ? theme.group1 : theme.group0;
      else context.fillStyle = box.group ? theme.frame : toneOf(theme, box.tone)[1];
      context.fillRect(box.x, box.y, Math.max(box.w, 1 / this.scale), Math.max(box.h, 1 / this.scale));
      if (!box.open) continue;
      context.strokeStyle = theme.frame;
      context.lineWidth = 0.7 / this.scale;
      context.strokeRect(box.x, box.y, box.w, box.h);
    }
  }

  draw(camera, theme) {
    if (!this.picture.width || !this.picture.height) return; // the page is not laid out yet
    const context = this.canvas.getContext("2d");
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.picture, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.strokeStyle = theme.accent;
    context.lineWidth = 1.5;
    const [x, y] = [this.left + camera.x * this.scale, this.top + camera.y * this.scale];
    context.strokeRect(x, y, (camera.width / camera.k) * this.scale, (camera.height / camera.k) * this.scale);
  }
}
