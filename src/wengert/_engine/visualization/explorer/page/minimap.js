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
